#!/usr/bin/env python3
"""Searches settings of an experiment with Optuna: the TPE sampler suggests them, and the median pruner stops runs that fall behind.

usage: optuna_search.py EXPERIMENT [TRIALS [STEPS]]; needs `pip install optuna` and stiefel on the PATH
"""
import json
import subprocess
import sys

import optuna

PARTS = 5  # a run is judged after each of them


def sweep(*words):
    """What `stiefel sweep WORDS` prints."""
    return json.loads(subprocess.run(["stiefel", "sweep", *map(str, words)], check=True, stdout=subprocess.PIPE).stdout)


def train(trial, experiment, steps):
    settings = {
        "optimizer.rate": trial.suggest_float("optimizer.rate", 1e-4, 1, log=True),
        "model.recurrent.reflections": trial.suggest_int("model.recurrent.reflections", 1, 16),
        "train.steps": steps,
    }
    asked = sweep("ask", experiment, *(f"{key}={value}" for key, value in settings.items()))
    trial.set_user_attr("path", asked["path"])
    for part in range(1, PARTS + 1):
        told = sweep("tell", asked["sweep"], asked["run"], *(["--until", steps * part // PARTS] if part < PARTS else []))
        if told["status"] == "diverged":
            raise optuna.TrialPruned(told["message"])
        if told["objective"] is None:  # not evaluated yet
            continue
        trial.report(told["objective"], told["step"])
        if not told["finished"] and trial.should_prune():
            raise optuna.TrialPruned(f"fell behind at step {told['step']}")
    return told["objective"]


def main(experiment, trials=20, steps=3000):
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1), pruner=optuna.pruners.MedianPruner(n_startup_trials=4))
    study.optimize(lambda trial: train(trial, experiment, int(steps)), n_trials=int(trials))
    states = [trial.state.name for trial in study.trials]
    print(f"{states.count('COMPLETE')} trials finished, {states.count('PRUNED')} were pruned")
    print(f"best: {study.best_value:.6g} with {study.best_params} in {study.best_trial.user_attrs['path']}")


main(*sys.argv[1:])
