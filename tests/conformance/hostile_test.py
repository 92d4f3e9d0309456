#!/usr/bin/env python3
"""`stiefel check` names what is wrong with a plugin, once: hostile_test.py PROGRAM FOLDER_WITH_PLUGINS..."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

program, *folders = sys.argv[1:]

# Plugin, options, and what each FAIL line of the report must say, in order.
wrong = (
    ("hostile_crash", "", "FAIL .* apply ended the program with signal 11 .*-DCMAKE_BUILD_TYPE=Debug"),
    ("hostile_formed", "fault=pullback", r"FAIL .* pullback ended the program with signal 11 "),
    ("hostile_formed", "fault=materialise", r"FAIL .*no matrix today \(in materialise\(\) of hostile_formed[^$]*sound_formed \(parametrisation\) of .*\n  not checked: it does not take the options"),
    ("hostile_exit", "", "FAIL .* refresh ended the program with exit code 0"),
    ("hostile_loop", "--limit=5", r"FAIL .* apply_adjoint did not return within 5 s \(--limit\)"),
    ("hostile_nan", "", r"FAIL finite .*apply\(I\) has NaN or Inf, or was not written"),
    ("hostile_gradient", "", "FAIL gradient "),
    ("hostile_claim", "", r"FAIL claim .*the singular values of W are in \[.*\], but claim\(\) says that all are 1"),
    ("hostile_throw_create", "", r"FAIL shapes .*in create\(\) of hostile_throw_create"),
    ("hostile_throw_int", "", r"FAIL .*type int was thrown in apply\(\) of hostile_throw_int"),
    ("hostile_map", "factor=-1", r"FAIL gradient .*got = −expected: check the sign[^$]*again: stiefel check \S+ factor=-1 --shape \d+x\d+ --scalar float64 --seed \d"),
    ("hostile_map", "factor=2", "FAIL gradient .*got = 2 × expected: check for a factor of 2"),
    ("hostile_map", "factor=0", r"FAIL gradient .*every entry is 0: is it ever added\?"),
    ("hostile_map", "factor=1.01", "FAIL gradient "),
    ("hostile_map", "fault=allocation_apply", "FAIL allocation .*apply allocates memory 1 times"),
    ("hostile_map", "fault=allocation_apply_adjoint", "FAIL allocation .*apply_adjoint allocates"),
    ("hostile_map", "fault=allocation_accumulate", "FAIL allocation .*accumulate allocates"),
    ("hostile_map", "fault=race", "FAIL threads .*a race"),
    ("hostile_map", "fault=forgets", r"FAIL save and load .*after loading.*serialise\(\) must save"),
    ("hostile_map", "fault=forgets_base", r"FAIL save and load .*W of a new object that was loaded.*serialise\(\) must save"),
    ("hostile_map", "fault=record", r"FAIL save and load .*record\(\) gives other scalars after loading; serialise\(\) must save"),
    ("hostile_map", "fault=record_late", "FAIL record .*names of recorded scalars must be .*the same at every call"),
    ("hostile_map", "fault=base_gradient", "FAIL gradient .*wrong: recurrent.W; right: recurrent.extra"),
    ("hostile_map", "fault=base_spectrum", "FAIL spectrum .*got = 0.5 × expected"),
    ("hostile_map", "fault=base_jumps", r"FAIL after_step .*keeps W for 120 steps at \d+ θ; .*such a change of base must not change W"),
    ("hostile_map", "fault=far_claim", r"FAIL claim .*W has the singular value \S+ at \d+ θ, but claim\(\) says that all are in \[0, 10\]"),
    ("hostile_map", "fault=near_claim", r"FAIL claim .*W has the singular value \S+ at θ with numbers of the order of [15] added, but claim\(\) says that all are in \[0, 1\]"),
    ("hostile_map", "fault=noise", r"FAIL claim .*W has the singular value \S+ with noise of 0.05 on θ, but claim\(\) says that all are in \[0, 10000\]"),
    ("hostile_map", "fault=order", r"FAIL threads .*other bits when the jobs of in_parallel\(\) run in another order"),
    ("hostile_map", "fault=constructor", "FAIL refresh .*another object with the same options and θ has another W"),
    ("hostile_map", "fault=scratch", r"FAIL memory .*correct scratch\(columns\).*in apply\(\) of hostile_map"),
    ("hostile_map", "fault=finish_reads", "FAIL memory .*the result of finish depends on numbers outside θ and the sum"),
    ("hostile_map", "fault=finish_writes", "FAIL memory .*finish wrote outside the block of dθ"),
    ("hostile_map", "fault=accumulate_reads", "FAIL memory .*the result of accumulate depends on numbers outside X"),
    ("hostile_map", "fault=refresh_reads", "FAIL memory .*the result of refresh or apply depends on numbers outside θ"),
    ("hostile_map", "fault=no_block", r"FAIL .*there is no block 2: the number of blocks is 2; correct the index or blocks\(\).*in refresh\(\) of hostile_map"),
    ("hostile_map", "fault=sets", r"FAIL finish adds .*dθ is set, but must be added to with \+="),
    ("hostile_map", "fault=penalty_sets", r"FAIL penalty adds .*dθ is set, but must be added to with \+=, in penalty"),
    ("hostile_map", "fault=penalty_once", r"FAIL penalty .*penalty\(\) returns \S+, and 0 with another gradient when it is called again: it must depend on θ alone"),
    ("hostile_map", "fault=cost", r"FAIL cost .*cost\(64\).apply is \S+, but cost\(1\).apply is \S+: it must be that of all columns"),
    ("hostile_map", "fault=cost_finish", r"FAIL cost .*cost\(64\).finish is \S+, but cost\(1\).finish is \S+: it must not depend on the columns"),
    ("hostile_map", "fault=shared_finish", r"FAIL threads .*stopped midway by those of another map of the method, give another gradient"),
    ("hostile_map", "fault=constant", "FAIL additive .*does it have a term without X"),
    ("hostile_map", "fault=columns", "FAIL additive .*257 columns at once as one at a time"),
    ("hostile_map", "fault=columns_apply", "FAIL apply is W .*257 columns at once"),
    ("hostile_map", "fault=many_columns", "FAIL gradient .*130 × 130, 2099 columns"),
    ("hostile_map", "fault=shared", "FAIL refresh .*objects must not share static variables"),
    ("hostile_map", "fault=off_manifold", r"FAIL initialise .*leaves the block `recurrent.W` off its manifold"),
    ("hostile_map", "fault=loose", r"FAIL after_step .*the block `recurrent.W` of constant norm .* after being doubled; after_step\(\) must restore it"),
    ("hostile_map", "fault=too_large", r"FAIL memory .*does not fit into .*in finish\(\) of hostile_map"),
    ("hostile_cell", "", "FAIL gradient .*\n.*\n +(input.weight|recurrent.W) +\\d+, \\d+ |FAIL gradient .*\n.*\n +(input.bias|initial_state) +\\d+ "),
    ("hostile_cell", "fault=chunk", "FAIL slices and chunks "),
    ("hostile_cell", "fault=columns", "FAIL gradient .*40 units, 24 sequences, 48 steps"),
    ("hostile_cell", "fault=late", "FAIL gradient .*40 units, 24 sequences, 48 steps"),
    ("hostile_cell", "relu=true", "FAIL gradient "),
    ("hostile_cell", "fault=allocation_forward", "FAIL allocation .*forward allocates"),
    ("hostile_cell", "fault=allocation_backward", "FAIL allocation .*backward allocates"),
    ("hostile_cell", "fault=input_rows", r"FAIL finite .*chunk.delta.*is input_rows\(\) right\?"),
    ("hostile_cell", "fault=constructor", r"FAIL sizes .*no cell today \(in create\(\) of hostile_cell"),
    ("hostile_cell", "fault=random_start", r"FAIL initialise .*initialise\(\) must draw from its Rng alone"),
    ("hostile_cell", "fault=test_point", r"FAIL memory .*initialise, initialise_bias or test_point wrote outside its blocks"),
    ("hostile_cell", "fault=steps", r"FAIL shape .*sizes depend on context\(\).steps"),
    ("hostile_cell", "fault=reflects", "FAIL after_step .*twice as once at 10+ θ"),
    ("hostile_cell", "fault=no_readout", "FAIL no readout .*no columns of doutput as zeros, without dhidden"),
    ("hostile_cell", "fault=unrecorded", "FAIL dhidden .*same bits of all gradients where dhidden has no columns"),
    ("hostile_cell", "fault=guard", "FAIL slices and chunks .*as the whole, with inputs × 10+"),
    ("hostile_cell", "fault=race", "FAIL threads .*a race"),
    ("hostile_cell", "fault=clip", "FAIL message clip .*clip all that apply_adjoint"),
    ("hostile_cell", "fault=output_last", r"FAIL memory .*write all of the output rows, output_row\(\) and output_rows\(\)"),
    ("hostile_cell", "fault=output_scales", r"FAIL memory .*are input_rows\(\), output_row\(\) and output_rows\(\) right\?"),
    ("hostile_cell", "fault=output_nan", r"FAIL finite .*NaN or Inf in the output rows, output_row\(\) and output_rows\(\)"),
    ("hostile_cell", "fault=output_outside", r"FAIL shape .*the output rows are not inside the saved rows"),
    ("hostile_cell", "fault=member", r"FAIL determinism .*must not keep anything in members"),
    ("hostile_cell", "fault=bias", r"FAIL .* initialise_bias ended the program with signal (6|11) "),
    ("hostile_cell", "fault=bias_sets", r"FAIL initialise_bias .*row 0 of the bias is 1 where it was 0, and 1 where it was 1: initialise_bias\(\) must add"),
    ("hostile_cell", "fault=table", r"FAIL longer sequences .*made for 6 steps, the cell puts out other numbers at 18 steps"),
    ("hostile_cell", "fault=zero_start", r"FAIL entering state .*the outputs do not depend on the state that enters the first step"),
    ("hostile_cell", "fault=around_test_point", r"FAIL gradient .*wrong: unused"),
    ("hostile_cell", "fault=unset", r"FAIL memory .*made in other memory gives other numbers"),
    ("hostile_cell", "fault=after", r"FAIL .*chunk.at\(\d+\) and chunk.before\(\d+\) do not exist: the chunk has \d+ steps"),
    ("hostile_cell", "fault=maps", r"FAIL maps .*two maps are named `gate`"),
    ("hostile_optimizer", "", r"FAIL save and continue .*after step 5, .*step 6: serialise\(\) must save"),
    ("hostile_optimizer", "fault=forgets", r"FAIL save and continue .*after step 505, .*step 506: serialise\(\) must save"),
    ("hostile_optimizer", "fault=allocation", "FAIL allocation .*step allocates"),
    ("hostile_optimizer", "fault=constructor", r"FAIL blocks .*no optimizer today \(in create\(\) of hostile_optimizer"),
    ("hostile_optimizer", "fault=refuses", r"FAIL blocks .*attach\(\) refuses every block: no block suits this optimizer"),
    ("hostile_optimizer", "fault=shared", "FAIL threads .*must not share"),
    ("hostile_optimizer", "fault=columns", "FAIL quadratic bowl .*of the block `(bias|slope)` after 200 steps"),
    ("hostile_optimizer", "fault=half", r"FAIL quadratic bowl .*steps never change entry \d+ of the block"),
    ("hostile_optimizer", "fault=panels", r"FAIL quadratic bowl .*never change entry 9216 of the block `long` of 10007 numbers"),
    ("hostile_optimizer", "fault=nan", "FAIL zero gradient ", "FAIL zero rate ", "FAIL quadratic bowl .*nan", "FAIL finite .*NaN or Inf"),
    ("hostile_optimizer", "fault=large", "FAIL quadratic bowl .*of the block `rotation_12` after 200 steps"),
    ("hostile_optimizer", "fault=first_rate", "FAIL changing rate .*is the same with the rates 0.01 and 0.05"),
    ("hostile_optimizer", "fault=late", r"FAIL zero gradient .*1100 of them keep the point of a fresh state"),
    ("hostile_optimizer", "fault=origin", r"FAIL quadratic bowl .*the block `weight` stays at 0, where biases begin"),
    ("hostile_process", "fault=rounding", r"FAIL process .*create\(\) changes the rounding mode, for the whole program"),
    ("hostile_process", "fault=denormals", r"FAIL process .*create\(\) changes how denormal numbers are computed \(-ffast-math does\)"),
    ("hostile_process", "fault=traps", r"FAIL process .*create\(\) changes which floating-point exceptions end the program"),
    ("hostile_process", "fault=signals", r"FAIL process .*create\(\) changes the effect of the signal SIGHUP"),
    ("hostile_process", "fault=blocked", r"FAIL process .*create\(\) changes which signals are blocked"),
    ("hostile_process", "fault=folder", r"FAIL process .*create\(\) changes the current folder"),
    ("hostile_process", "fault=umask", r"FAIL process .*create\(\) changes the umask"),
    ("hostile_process", "fault=locale", r"FAIL process .*create\(\) changes the locale"),
    ("hostile_process", "fault=environment", r"FAIL process .*create\(\) changes the environment"),
    ("hostile_process", "fault=descriptor", r"FAIL process .*files are still open after all objects are gone: close them"),
    ("hostile_process", "fault=closed", r"FAIL process .*create\(\) changes files of the program, closing the descriptor 0"),
    ("hostile_process", "fault=thread", r"FAIL process .*a thread still runs after all objects are gone"),
    ("hostile_process", "fault=process", r"FAIL process .*a process is left after all objects are gone"),
    ("hostile_process", "fault=output", r'FAIL process .*it prints to standard output, which belongs to results: "hello from the plugin"'),
    ("hostile_process", "fault=grows", r"FAIL growth .*refresh keeps 41\d\d more bytes with each call"),
    ("hostile_task", "", "FAIL loss gradient .*got = 1.01 × expected.*\n.*\n +doutput"),
    ("hostile_task", "fault=masked", r"FAIL metrics .*measure\(\) must pass over columns whose weight is 0"),
    ("hostile_task", "fault=random_device", "FAIL determinism .*differs when it is filled again: .*std::random_device"),
    ("hostile_task", "fault=constructor", "FAIL determinism .*another object with the same seed: the constructor must"),
    ("hostile_task", "fault=dirty", r"FAIL determinism .*depends on what the Batch held before: resize\(\)"),
    ("hostile_task", "fault=leak", "FAIL splits disjoint .*share of validation sequences that are also in train"),
    ("hostile_task", "fault=stolen", r"FAIL splits disjoint .*10 of 500 sequences of test are also in train, but on average 0 in the train of another seed"),
    ("hostile_task", "fault=overlap", "FAIL splits disjoint .*10 sequences of test are also in validation, but only 0 in as many of train"),
    ("hostile_task", "fault=next_seed", r"FAIL seeds apart .* training sequences of the seed \d+ are also those of the seed \d+, but on average \S+ of seeds far away"),
    ("hostile_task", "fault=batch", r"FAIL held-out sets .*sequence 3 of validation is another one with train.batch = 3 than with 5"),
    ("hostile_task", "fault=passes", r"FAIL batches .*batches\(train\) is 10 for a training set of 60 in batches of 5; it must be 12"),
    ("hostile_task", "fault=finite", r"FAIL batches .*the second pass over train has the 50 sequences of the first: shape\(\) must set training_set"),
    ("hostile_task", "fault=cache", "FAIL threads .*(batches filled by four threads differ|a race)"),
    ("hostile_task", "fault=stream", r"FAIL streams .*batch 0 of train ends sequence \d with the label \d+, but batch 1 begins it with the symbol \d+: fill\(\) must continue the sequences"),
    ("hostile_task", "fault=tail", "FAIL splits disjoint .*share of test sequences that are also in train"),
    ("hostile_task", "fault=small_train", "FAIL splits disjoint .*share of test sequences that are also in train"),
    ("hostile_task", "fault=nan_late", "FAIL batches .*target 0 at step 3 of sequence 0 is nan"),
    ("hostile_task", "fault=nan_metric", r"FAIL metrics .*measure\(\) gives `near` the sum nan"),
    ("hostile_task", "fault=next", r"FAIL batches .*shape\(\) must set predicts_inputs"),
    ("hostile_task", "fault=splits", r"FAIL splits disjoint .*validation has the same sequences as train.*name_of\(split\)"),
    ("hostile_task", "fault=no_gradient", "FAIL loss .*NaN, Inf or nothing in doutput"),
    ("hostile_task", "fault=report_throws", r"FAIL report .*no second report \(in report\(\) of hostile_task"),
    ("hostile_task", "fault=report_column", "FAIL memory .*report reads outside the outputs"),
    ("hostile_task", "fault=report_file", "FAIL report .*file same.txt twice.*must differ per index"),
    ("hostile_task", "fault=report_state", r"FAIL report .*reports something else when it is called again"),
    ("hostile_task", "fault=labels", r"FAIL batches .*the batch has no labels.*in fill\(\) of hostile_task"),
    ("hostile_task", "fault=baseline", r"FAIL baseline .*baseline\(\) is 1, but trivial\(\) reaches 0.1.* of train, .* of validation"),
    ("hostile_task", "fault=metric_set", r"FAIL metrics .*measure\(\) must"),
    ("hostile_task", "fault=metric_weights", r"FAIL metrics .*twice the weights, the same mean.*must multiply both sum and weight by the weight of the column, or neither"),
    ("hostile_task", "fault=form", r"FAIL form .*form\(\) has the scale 0: it must be above 0"),
    ("hostile_task", "fault=metrics", r"FAIL memory .*measure wrote to more metrics than metrics\(\) lists"),
)


def check(*words, prefix=()):
    return subprocess.run([*prefix, program, "check", *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def require(holds, text):
    if not holds:
        sys.exit(text)


def file_of(plugin):
    return next(str(p) for p in (pathlib.Path(f) / f"{plugin}.so" for f in folders) if p.exists())


for plugin, options, *expected in wrong:
    done = check(file_of(plugin), *options.split())
    said = f"{plugin} {options}: exit code {done.returncode}\n{done.stdout}"
    require(done.returncode == 3, said)
    require(len(re.findall("^  FAIL ", done.stdout, re.M)) == len(expected), said)
    for pattern in expected:
        require(re.search(pattern, done.stdout), f"no `{pattern}` from {said}")
    require("internal error" not in done.stdout, said)

# A state that blocks of one size share depends on their order; whether threads collide is chance.
done = check(file_of("hostile_optimizer"), "fault=size")
require(done.returncode == 3 and re.search("FAIL blocks apart .*must not share", done.stdout), done.stdout)

# The program ends with its own exit code, whatever destructors of plugins do.
require(check(file_of("hostile_gradient"), prefix=("env", "HOSTILE_EXIT_LAST=0")).returncode == 3, "a destructor turns a failed check into success")


def run(folder, plugin, *words, model="{cell: {plugin: elman, hidden: 4}, recurrent: NAME}", code=0, **environment):
    """A short run with the plugin in place of NAME."""
    experiment = pathlib.Path(folder, f"{plugin}.yaml")
    experiment.write_text(f"""name: {plugin}
plugins: [{file_of(plugin)}]
task: {{plugin: adding, length: 10, validation_sequences: 10, test_sequences: 10}}
model: {model.replace("NAME", plugin)}
optimizer: {{plugin: adam}}
train: {{batch: 4, steps: 4}}
""", encoding="utf-8")
    words = [program, "run", experiment, "--quiet", "--output", folder, *words]
    done = subprocess.run(words, text=True, capture_output=True, env={**os.environ, **environment})
    require(done.returncode == code, f"{plugin} {words}: {done}")
    return done


with tempfile.TemporaryDirectory() as folder:
    diverges, unwritable = ("optimizer={plugin: sgd, rate: 1e30}",), ("--output", f"{folder}/hostile_gradient.yaml")
    for words, code, last in (diverges, 5, 0), (unwritable, 2, 0), ((), 0, 3):
        run(folder, "hostile_gradient", *words, code=code, HOSTILE_EXIT_LAST=str(last))
    # A run names the function that fails, too.
    for fault, code in ("materialise", 3), ("pullback", -11):
        done = run(folder, "hostile_formed", f"model.recurrent.fault={fault}", code=code)
        require(f"{fault}() of hostile_formed" in done.stderr, done)

    # A run puts back what a constructor changes, and keeps standard output for results.
    sound = run(folder, "hostile_process")
    for fault, said in ("rounding", "changed the rounding mode in its constructor, which was put back"), ("folder", "changed the current folder in its constructor"), ("output", "hello from the plugin"):
        done = run(folder, "hostile_process", f"model.recurrent.fault={fault}")
        require(said in done.stderr, done.stderr)
        require(len(done.stdout.splitlines()) == 2 and done.stdout.split(" after ")[0] == sound.stdout.split(" after ")[0], done.stdout)

    # Runs refuse what a pass would write with.
    for fault, sentence in ("output_outside", "the output rows are not inside the saved rows"), ("maps", "two maps are named `gate`"):
        model = f"{{cell: {{plugin: NAME, hidden: 4, fault: {fault}}}, recurrent: dense}}"
        done = run(folder, "hostile_cell", model=model, code=3)
        require(f"is wrong: {sentence}; `stiefel check` tests it" in done.stderr, done.stderr)

    # A run warns of a map that does not keep its claim, once.
    done = run(folder, "hostile_claim", "record={spectrum: 2}")
    sentence = "the map hostile_claim is not what it claims: its singular values are from "
    require(done.stderr.count(sentence) == 1 and " after step 0, but should be 1\n" in done.stderr, done.stderr)
    log, = pathlib.Path(folder).glob("hostile_claim/*/log.txt")
    require(sentence in log.read_text(encoding="utf-8"), done.stderr)

# The methods after one that ends the program are checked, too, and what one number type leaves out is said.
done = check(file_of("hostile_crash"))
require(re.search("^after_hostile_crash .*\n(.*\n)*  passed", done.stdout, re.M), done.stdout)
done = check(file_of("hostile_gradient"), "--scalar", "float32")
require(done.returncode == 0 and re.search("skip gradient +is tested in float64 only", done.stdout), done.stdout)

done = check(file_of("hostile_task"), "fault=masked_nan")
require(done.returncode == 0, done.stdout)
done = check(file_of("hostile_task"), "fault=none")
require(done.returncode == 0 and re.search(r"skip report +reports\(\) is false", done.stdout), done.stdout)

for plugin, fault, remark in (("hostile_task", "selected", "note selection +test has the same sequences as validation"),
                              ("hostile_task", "targets", "note targets +all targets"), ("hostile_task", "inputs", "note inputs +all inputs"),
                              ("hostile_optimizer", "decay", r"note weight decay .*steps of the block `weight` depend on θ itself.*leave it to `optimizer.weight_decay`"),
                              ("hostile_map", "shrinks", r"note after_step .*it keeps W in 119 of 120 steps, but moves it by \S+ in another: if this is a change of base"),
                              ("hostile_task", "direction", r"note direction .*`near` is 0\S* for outputs of the loss .*higher_is_better, false, right\?"),
                              ("hostile_task", "seed", r"note seed +another seed .*Shuffle\(size, context\(\).seed\)"),
                              ("hostile_cell", "fixed_start", "note initialise +every seed")):
    done = check(file_of(plugin), f"fault={fault}")
    require(done.returncode == 0 and re.search(remark, done.stdout), done.stdout)

# A race is found on one core as well.
for plugin in "hostile_map", "hostile_cell":
    done = check(file_of(plugin), "fault=race", prefix=("taskset", "-c", str(min(os.sched_getaffinity(0)))))
    require(re.search("FAIL threads .*a race", done.stdout), done.stdout)

# A folder stands for its plugins, and a name that another plugin has is reported.
with tempfile.TemporaryDirectory() as folder:
    done = check(folder)
    require(done.returncode == 3 and "there are no plugins in" in done.stdout, done.stdout)
    built = os.path.join(folder, "build")
    os.mkdir(built)
    shutil.copy(file_of("dense"), built)
    done = check(folder)
    require(done.returncode == 0 and f"dense (parametrisation) of {built}/dense.so" in done.stdout, done.stdout)
    os.mkdir(os.path.join(folder, "bare"))
    os.rename(built, os.path.join(folder, "bare/build"))
    done = check(folder)
    require(done.returncode == 0 and f"dense (parametrisation) of {folder}/bare/build/dense.so" in done.stdout, done.stdout)
    shutil.copy(file_of("dense"), folder)
    shutil.copy(file_of("hostile_nan"), folder)
    done = check(folder)
    require(done.returncode == 3 and "1 of 2 files passed" in done.stdout, done.stdout)
    require(re.search("note name .*the parametrisation 'dense' is taken from .*, not from .*dense.so", done.stdout), done.stdout)
    odd = pathlib.Path(folder, "rate=1 it's")
    odd.mkdir()
    shutil.copy(file_of("hostile_map"), odd)
    shutil.copy(file_of("dense"), odd)
    done = check(str(odd), "--method", "dense")
    require(done.returncode == 0 and "dense (parametrisation)" in done.stdout and "hostile" not in done.stdout, done.stdout)
    done = check(str(odd), "--method", "denes")
    require(done.returncode == 2 and "none of the 2 files has a method 'denes'" in done.stdout, done.stdout)
    done = check(str(odd / "hostile_map.so"), "factor=0")
    again = re.search("again: stiefel (.*)", done.stdout)[1]
    done = check(*shlex.split(again)[1:])
    require(done.returncode == 3 and "FAIL gradient" in done.stdout, done.stdout)

# A plugin whose source has changed since it was built.
with tempfile.TemporaryDirectory() as folder:
    built = pathlib.Path(folder, "build")
    built.mkdir()
    shutil.copy(file_of("dense"), built)
    (built / "CMakeCache.txt").write_text(f"# a comment\nCMAKE_HOME_DIRECTORY:INTERNAL={folder}\n", encoding="utf-8")
    for source, stale in (("other.cpp", False), ("dense.cpp", True)):
        pathlib.Path(folder, source).write_text("", encoding="utf-8")
        os.utime(built / "dense.so", (0, 0))
        done = check(str(built / "dense.so"))
        sentence = f"warning: {folder}/dense.cpp has changed since {built}/dense.so was built; build it again with cmake --build {built}\n"
        require(done.returncode == 0 and done.stdout.count(sentence) == stale, done.stdout)

# A task without its data is not checked, which is not the same as passed.
with tempfile.TemporaryDirectory() as folder:
    os.environ.pop("STIEFEL_DATA", None)
    done = check(file_of("pixel_mnist"), prefix=("env", f"HOME={folder}", "XDG_CACHE_HOME="))
    require(done.returncode == 4 and "skip create" in done.stdout and "not checked" in done.stdout and "passed" not in done.stdout, done.stdout)
    pathlib.Path(folder, "stiefel").mkdir()
    pathlib.Path(folder, "stiefel/own.txt").write_text("the quick brown fox\n" * 200, encoding="utf-8")
    done = check(file_of("characters"), "file=own.txt", "mode=stream", "bptt=5", prefix=("env", f"XDG_CACHE_HOME={folder}"))
    require(done.returncode == 0 and "passed" in done.stdout, done.stdout)
