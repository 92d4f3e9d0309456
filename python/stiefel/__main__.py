"""python -m stiefel: the command `stiefel`."""

from stiefel.command import main

main()
