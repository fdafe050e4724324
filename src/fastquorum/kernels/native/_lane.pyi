from fastquorum.kernels.lane import Lane as _Lane

HAS_MUTANTS: bool

class Lane(_Lane): ...

def plant_mutation(number: int) -> None: ...
