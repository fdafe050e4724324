from tests.cli.conftest import fastquorum as fastquorum
