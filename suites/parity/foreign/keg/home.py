"""What keg keeps in a home: manifests, records, locks and proposals. Functions, and dicts as JSON has them."""

import contextlib
import datetime
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import sys
import uuid

ROOT = pathlib.Path(os.environ.get("HOME", "/")) / ".bot-bottle"
STATE = ROOT / "state"
BACKENDS = ("docker", "smolmachines")
OWNER = hashlib.blake2b(os.fsencode(ROOT), digest_size=8).hexdigest()
#: Of the environments that were resolved here.
VALUES = set()
WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
SHAPE = {
    "identity": str, "agent_name": str, "cwd": str, "copy_cwd": bool, "started_at": str,
    "compose_project": str, "backend": str,
}
TYPES = {"env": dict, "image": str, "agent_provider": str, "git": dict, "egress": dict, "extends": str}


class No(Exception):
    """What keg does not do, and why."""


def fault(name):
    return os.environ.get("KEG_FAULT") == name


@contextlib.contextmanager
def disk(doing):
    try:
        yield
    except OSError as error:
        raise No(f"{doing}: {error.strerror}") from None


# --- manifests ---------------------------------------------------------------------------------------


def manifest(name):
    """The keys of a bottle and of all that it extends; the nearest wins."""
    seen, found = [], {}
    wanted, asker = name, None
    while wanted is not None:
        where = ROOT / "bottles" / f"{asker or wanted}.md"
        why = f"{where}: extends" if asker else f"{where}"
        if not WORD.fullmatch(wanted):
            raise No(f"{why}: {wanted!r} is no name of a bottle")
        if wanted in seen:
            raise No(f"{why}: {' extends '.join([*seen, wanted])}")
        file = ROOT / "bottles" / f"{wanted}.md"
        try:
            content = keys_of(file, file.read_bytes())
        except FileNotFoundError:
            raise No(f"{why}: there is no bottle {wanted!r}") from None
        except OSError as error:
            raise No(f"{why}: {file}: {error.strerror}") from None
        env = {} if fault("parent-forgotten") and asker else content.get("env", {})
        found = {**content, **found, "env": {**env, **found.get("env", {})}}
        seen.append(wanted)
        wanted, asker = content.get("extends"), wanted
    return {"image": "node:22-slim", **found}


def keys_of(file, content):
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError:
        raise No(f"{file}: it is no UTF-8") from None
    ends = [at for at, line in enumerate(lines) if line.rstrip() == "---"]
    if ends[:1] != [0] or len(ends) < 2:
        raise No(f"{file}: the front matter must stand between two lines of ---")
    keys = front_matter(file, "\n".join(lines[1 : ends[1]]))
    if not isinstance(keys, dict):
        raise No(f"{file}: the front matter is no mapping")
    for key, value in keys.items():
        if key not in TYPES:
            raise No(f"{file}: {key}: there is no such key, only {', '.join(TYPES)}")
        if not isinstance(value, TYPES[key]):
            raise No(f"{file}: {key}: it must be a {TYPES[key].__name__}")
    for name, value in keys.get("env", {}).items():
        if not isinstance(name, str) or not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
            raise No(f"{file}: env: {name!r} is no name of a variable")
        if not isinstance(value, str) or "\0" in value:
            raise No(f"{file}: env.{name}: it must be a text without NUL (in quotes)")
    for key, value in keys.get("egress", {}).items():
        if key != "routes":
            raise No(f"{file}: egress.{key}: there is no such key")
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise No(f"{file}: egress.routes: it must be a list of texts")
    return keys


def front_matter(file, text):
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node, deep=False):
            names = [self.construct_object(key, deep=True) for key, _ in node.value]
            if len({repr(name) for name in names}) < len(names):
                raise yaml.constructor.ConstructorError(None, None, "twice", node.start_mark)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader=Loader) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = f"line {mark.line + 2} is no YAML, or says something twice" if mark else "no YAML"
    except (ValueError, RecursionError, TypeError):
        why = "a value cannot be read"
    # Outside, or its context would show what was read.
    raise No(f"{file}: {why}")


def resolve(keys, name, ask):
    """Literals, and what the guest alone may see. What the host lacks is told before anybody is asked."""
    literals, hidden = {}, {}
    variables = {key: re.fullmatch(r"\$\{(\w+)\}", entry, re.ASCII) for key, entry in keys["env"].items()}
    for key, match in variables.items():
        lacks = match and (match[1] not in os.environ or (fault("empty-is-missing") and not os.environ[match[1]]))
        if lacks:
            raise No(f"{name}.md: env.{key}: the host has no variable {match[1]}")
    for key, entry in keys["env"].items():
        if variables[key]:
            hidden[key] = os.environ[variables[key][1]]
        elif entry.startswith("?"):
            hidden[key] = ask(key, entry[1:].strip())
            if hidden[key] is None:
                raise No(f"{name}.md: env.{key}: nobody answers")
        else:
            literals[key] = entry
    VALUES.update(literals.values(), hidden.values())
    return literals, hidden


def unsaid(words):
    """What a tool says, for a refusal: a value that it repeats is left out, quoted or not."""
    text = os.fsdecode(words)
    lines = {line.strip() for value in VALUES for line in (value, *value.splitlines())} - {""}
    for line in sorted(lines, key=len, reverse=True):
        for spelt in (line, repr(line)[1:-1], json.dumps(line)[1:-1]):
            # A short one is found as a word of its own alone.
            text = re.sub(rf"(?<!\w){re.escape(spelt)}(?!\w)" if len(line) < 6 else re.escape(spelt), "…", text)
    return os.fsencode(text).decode(errors="replace").strip()


# --- records -----------------------------------------------------------------------------------------


def folder(identity):
    with disk(f"find {identity!r}"):
        if not WORD.fullmatch(identity) or not (STATE / identity).is_dir():
            raise No(f"no bottle {identity!r} is recorded")
    return STATE / identity


def record(identity):
    file = folder(identity) / "metadata.json"
    try:
        content = {"compose_project": "", "backend": "", **json.loads(file.read_bytes())}
        wrong = [key for key, kind in SHAPE.items() if type(content.get(key)) is not kind]
        if wrong:
            raise No(f"{file}: {', '.join(wrong)}: missing or of another type")
    except OSError as error:
        raise No(f"{file}: {error.strerror}") from None
    except (ValueError, TypeError):
        if fault("damaged-is-removed"):
            shutil.rmtree(file.parent)
        raise No(f"{file}: it is damaged") from None
    content["backend"] = content["backend"] or "docker"
    if content["identity"] != identity:
        raise No(f"{file}: it is about another bottle")
    if content["backend"] not in BACKENDS:
        raise No(f"{file}: backend {content['backend']!r} is none of {', '.join(BACKENDS)}")
    return content


def identities():
    return sorted(path.name for path in STATE.iterdir()) if STATE.is_dir() else []


def write(file, content):
    with disk(f"{file}"):
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        draft.write_text(json.dumps(content))
        draft.rename(file)


def create(name, backend):
    """Record a bottle, held by us; its identity and what holds it."""
    identity = f"{name}-{uuid.uuid4().hex[:10]}"
    draft = ROOT / "drafts" / identity
    with disk(f"record {identity}"):
        (draft / "transcript").mkdir(parents=True)
        STATE.mkdir(exist_ok=True)
        hold = held(draft)
        now = datetime.datetime.now(datetime.UTC).isoformat()
        values = (identity, name, os.getcwd(), False, now, "", backend)
        write(draft / "metadata.json", dict(zip(SHAPE, values, strict=True)))
        draft.rename(STATE / identity)
    return identity, hold


def held(path):
    """Hold a bottle until we end; ``None`` when another process does, or it is gone."""
    try:
        hold = open(path / "held", "ab")
    except FileNotFoundError:
        return None
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.is_dir():
            return hold
    hold.close()
    return None


@contextlib.contextmanager
def alone():
    """Nobody else preserves a bottle, or forgets one, until the end of the block."""
    with open(ROOT / "guard", "ab") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        yield


def preserve(identity):
    with disk(f"preserve {identity}"), alone():
        (folder(identity) / "preserved").touch()


def is_preserved(identity):
    return (STATE / identity / "preserved").exists()


def forget(identity):
    """Remove files with values, and what is recorded unless it is preserved."""
    with disk(f"forget {identity}"):
        for file in (ROOT / "handed").glob(f"{identity}.*"):
            file.unlink(missing_ok=True)
        away = ROOT / "drafts" / f"{identity}-{os.getpid()}"
        away.parent.mkdir(exist_ok=True)
        with alone():
            if is_preserved(identity):
                return
            (STATE / identity).rename(away)
        shutil.rmtree(away)


def sweep():
    """Remove what somebody recorded or removed who was killed in the middle of it."""
    drafts = ROOT / "drafts"
    for path in drafts.iterdir() if drafts.is_dir() else []:
        if (hold := held(path)) is not None or not (path / "held").exists():
            shutil.rmtree(path, ignore_errors=True)
            if hold is not None:
                hold.close()


# --- proposals ---------------------------------------------------------------------------------------


def proposal(id):
    file = ROOT / "wishes" / f"{id}.json"
    if not re.fullmatch(r"wish-[0-9a-f]{8}", id) or not file.is_file():
        raise No(f"there is no wish {id!r}")
    try:
        content = json.loads(file.read_bytes())
        good = all(isinstance(content[key], str) for key in ("id", "identity", "image", "justification"))
        if not good or content["id"] != id:
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise No(f"{file}: it is damaged") from None
    return content


def proposals():
    found = []
    for file in sorted((ROOT / "wishes").glob("wish-*.json")):
        try:
            found.append(proposal(file.stem)["id"])
        except No as no:
            print(f"keg warns: {no}", file=sys.stderr)
    return found


def propose(identity, image, justification):
    record(identity)
    if not image.strip() or not justification.strip():
        raise No("a wish needs an image and a justification")
    id = f"wish-{uuid.uuid4().hex[:8]}"
    with disk(f"{ROOT / 'wishes'}"):
        (ROOT / "wishes").mkdir(exist_ok=True)
    write(ROOT / "wishes" / f"{id}.json", {"id": id, "identity": identity, "image": image, "justification": justification})
    return id
