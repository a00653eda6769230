"""torchtune: the command `tune run` is completed from the runtime's name, its command and the trainer's arguments."""

from __future__ import annotations

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.merge.model import (
    ANCESTOR_LABEL,
    NODE,
    PORT,
    TRAINER,
    ControllerFailure,
    Plan,
)
from astrago_trainer.core.merge.resources import gpus, resources_for_processes

ENTRYPOINT = ["tune", "run"]
FIXED_BY_RUNTIME = (
    "checkpointer.checkpoint_dir",
    "output_dir",
    "tokenizer.merges_file",
    "tokenizer.path",
)
_SMALL_LLAMAS = ("llama3_2/1B", "llama3_2/3B")
_BIG_LLAMA = "llama3_3/70B"
_QWEN = "qwen2_5/1.5B"
_MODELS = (*_SMALL_LLAMAS, _BIG_LLAMA, _QWEN)


def is_entrypoint(command: list[str] | None) -> bool:
    """Whether this is a torchtune run: the command is exactly `tune run`."""
    return command == ENTRYPOINT


def model_of(runtime_name: str) -> str:
    """The model is read off the runtime's name: `torchtune-llama3.2-1b` means `llama3_2/1B`."""
    parts = runtime_name.split("-")
    return f"{parts[1].replace('.', '_')}/{parts[2].upper()}" if len(parts) == 3 else ""


def lengthened_command(plan: Plan, nodes: int, processes: int | str, gpu_count: int) -> list[str]:
    """The command with rendezvous, recipe, config and what the runtime fixes."""
    added = []
    several = processes > 1 if isinstance(processes, int) else gpu_count > 1
    if nodes > 1 or several:
        added.append(f"--rdzv_endpoint={plan.job.name}-{NODE}-0-0.{plan.job.name}:{PORT}")
    recipe, config = _recipe_and_config(plan, nodes, processes, gpu_count)
    return [*ENTRYPOINT, *added, recipe, "--config", config, *_fixed_arguments(plan)]


def check(plan: Plan) -> list[Problem]:
    """What admission says of a torchtune run; raises ControllerFailure where it crashes."""
    trainer = plan.job.trainer or {}
    name = plan.job.runtime_ref.get("name", "")
    model = model_of(name)
    problems = []
    if model not in _MODELS:
        text = f"must have a supported pretrained model, invalid model configured: {model}"
        problems.append(Problem("spec.runtimeRef.name", "FieldValueInvalid", text))
    if plan.version == "2.1" and "numNodes" not in trainer:
        raise ControllerFailure(
            "torchtune needs spec.trainer.numNodes, the webhook crashes without it"
        )
    nodes = trainer.get("numNodes", 1)
    if nodes > 1 and model != _BIG_LLAMA:
        problems.append(
            Problem("spec.trainer.numNodes", "FieldValueInvalid", f"must be 1 for {model} model")
        )
    processes = trainer.get("numProcPerNode", "auto")
    _, config = _recipe_and_config(plan, nodes, processes, gpus(resources_for_processes(plan)))
    if "_qlora" in config:
        problems += _check_qlora(model, config)
    if plan.version == "2.3":
        problems += _check_arguments(trainer.get("args") or [], nodes)
    return problems


def _check_qlora(model: str, config: str) -> list[Problem]:
    problems = []
    if model == _QWEN:
        text = f"QLoRA is not supported for {model} model"
        problems.append(Problem("spec.runtimeRef.name", "FieldValueInvalid", text))
    if "_qlora_single_device" not in config and model in _SMALL_LLAMAS:
        processes = f"must be auto or 1 for {model} model when using QLoRA"
        resources = f"must have gpu resource with value 1 for {model} model when using QLoRA"
        problems.append(Problem("spec.trainer.numProcPerNode", "FieldValueInvalid", processes))
        problems.append(Problem("spec.trainer.resourcesPerNode", "FieldValueInvalid", resources))
    return problems


def _check_arguments(args: list[str], nodes: int) -> list[Problem]:
    problems = []
    if nodes > 1 and (_uses_lora(args) or _uses_qlora(args, "2.3")):
        text = "LoRA fine-tuning is not supported for multi-node training in TorchTune"
        problems.append(Problem("spec.trainer.numNodes", "FieldValueInvalid", text))
    for index, argument in enumerate(args):
        key = argument.split("=", 1)[0]
        if key in FIXED_BY_RUNTIME:
            text = f'must not set immutable config "{key}" in trainer args; it is managed by the runtime'
            problems.append(Problem(f"spec.trainer.args[{index}]", "FieldValueInvalid", text))
    return problems


def _recipe_and_config(
    plan: Plan, nodes: int, processes: int | str, gpu_count: int
) -> tuple[str, str]:
    args = (plan.job.trainer or {}).get("args") or []
    qlora, lora = _uses_qlora(args, plan.version), _uses_lora(args)
    recipe, suffix = "full_finetune_distributed", "_full"
    if nodes == 1 and (processes == 1 or gpu_count == 1):
        recipe, suffix = "full_finetune_single_device", "_full_single_device"
        if qlora:
            recipe, suffix = "lora_finetune_single_device", "_qlora_single_device"
        elif lora:
            recipe, suffix = "lora_finetune_single_device", "_lora_single_device"
    elif nodes == 1 and qlora:
        recipe, suffix = "lora_finetune_distributed", "_qlora"
    elif nodes == 1 and lora:
        recipe, suffix = "lora_finetune_distributed", "_lora"
    elif nodes > 1:
        suffix = "_full_multinode"
    return recipe, f"{model_of(plan.job.runtime_ref.get('name', ''))}{suffix}"


def _uses_lora(args: list[str]) -> bool:
    return any("model.lora_attn_modules" in argument for argument in args)


def _uses_qlora(args: list[str], version: str) -> bool:
    if version == "2.3":
        return not _is_true(args, "model.use_dora") and _is_true(args, "model.quantize_base")
    quantized = False
    for argument in args:
        if "model.use_dora" in argument:
            return False
        quantized = quantized or "model.quantize_base" in argument
    return quantized


def _is_true(args: list[str], item: str) -> bool:
    for argument in args:
        name, found, value = argument.partition("=")
        if found and item in name and value.strip().casefold() == "true":
            return True
    return False


def _fixed_arguments(plan: Plan) -> list[str]:
    """Paths that only the runtime knows, copied from its own command."""
    fixed = []
    for pods in plan.pod_sets:
        if pods.job["template"]["metadata"].get("labels", {}).get(ANCESTOR_LABEL) != TRAINER:
            continue
        for container in pods.pod.get("containers", ()):
            if container["name"] == NODE:
                fixed += [
                    word
                    for word in container.get("command", ())
                    if word.split("=")[0] in FIXED_BY_RUNTIME
                ]
    return fixed
