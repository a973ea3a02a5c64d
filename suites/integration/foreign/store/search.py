"""The catalogue: articles of one edition, found by constraints, in pages whose cursors are signed."""

import base64
import concurrent.futures
import hashlib
import hmac
import json
import re
import threading
from decimal import Decimal

import psycopg

from web import FAULT, Refused

CATEGORIES = ("screw", "nut", "washer", "insert", "bearing", "servo", "motor")
WORDS = {"drive", "material", "standard", "strength_class", "thread"}
NUMBERS = {"across_flats_mm", "bore_mm", "head_diameter_mm", "height_mm", "length_mm", "outer_diameter_mm",
           "socket_mm", "speed_rpm", "thickness_mm", "torque_n_m", "width_mm"}
NUMBER = re.compile(r"\d{1,9}(\.\d{1,6})?", re.ASCII)
TIERS = ((1, 100), (50, 90), (200, 80))
PAGE = 25


class Reader:
    """One connection as the role that can only read; a database that hangs is given up on."""

    def __init__(self, url):
        self.url, self.lock, self.connection = url, threading.Lock(), None
        self.pool = concurrent.futures.ThreadPoolExecutor(8)

    def rows(self, sql, *values, seconds=3.0):
        """Rows of the articles, or a refusal with 503."""
        try:
            return self.pool.submit(self._rows, sql, values).result(timeout=seconds)
        except (psycopg.Error, TimeoutError, concurrent.futures.TimeoutError) as error:
            self.pool, self.lock, self.connection = concurrent.futures.ThreadPoolExecutor(8), threading.Lock(), None
            raise Refused(503, "the database does not answer") from error

    def _rows(self, sql, values):
        with self.lock:
            if self.connection is None or self.connection.closed:
                self.connection = psycopg.connect(self.url, autocommit=True, connect_timeout=2)
            return self.connection.execute(sql, values).fetchall()


class Catalogue:
    """Searches and prices."""

    def __init__(self, reader, key):
        self.reader, self.key = reader, key.encode()

    def search(self, asked):
        """Articles that meet every constraint, the cheapest first."""
        query = read(asked.query)
        constraints = list(constraints_of(query))
        named = hashlib.sha256(repr([each[:2] for each in constraints]).encode()).hexdigest()
        edition, after = self.place(query.get("cursor"), named)
        edition, articles = self.articles(edition)
        fitting = [each for each in articles if all(test(each) for _, _, test, *_ in constraints)]
        rest = [each for each in fitting if after is None or place_of(each) > after]
        if FAULT == "page-begins-again" and after is not None:
            rest = [each for each in fitting if place_of(each) >= after]
        page = rest[: query["limit"]]
        following = None
        if len(rest) > len(page):
            following = self.signed([edition, named, *place_of(page[-1])])
        return {
            "catalogue_version": edition, "total": len(fitting), "next_cursor": following,
            "candidates": [candidate(each, edition, constraints) for each in page],
            "no_match": None if fitting else no_match(articles, constraints),
        }

    def prices(self, asked):
        """What articles cost, by their ids."""
        ids = [value for name, value in asked.query if name == "part_id"]
        if len(ids) != len(asked.query) or not 1 <= len(ids) <= 100:
            raise Refused(422, "name 1 to 100 parts as part_id")
        edition, articles = self.articles(None)
        known = {each["part_id"]: each for each in articles}
        found = [known[each] for each in dict.fromkeys(ids) if each in known]
        return {"catalogue_version": edition, "unknown": [each for each in dict.fromkeys(ids) if each not in known],
                "prices": [{**costs(each), "torque_n_m": each["specs"].get("torque_n_m")} for each in found]}

    def articles(self, edition):
        if edition is None:
            edition = self.reader.rows("select max(edition) from shelf")[0][0]
        rows = self.reader.rows("select doc from shelf where edition = %s", edition)
        return edition, sorted((doc for (doc,) in rows), key=place_of)

    def signed(self, value):
        data = json.dumps(value).encode()
        return base64.urlsafe_b64encode(hmac.digest(self.key, data, "sha256") + data).decode()

    def place(self, cursor, named):
        if cursor is None:
            return None, None
        try:
            raw = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True)
        except ValueError as error:
            raise Refused(422, "the cursor is none of ours") from error
        if base64.urlsafe_b64encode(raw).decode() != cursor or not hmac.compare_digest(hmac.digest(self.key, raw[32:], "sha256"), raw[:32]):
            raise Refused(422, "the cursor is none of ours")
        edition, of, cents, part_id = json.loads(raw[32:])
        if of != named:
            raise Refused(422, "the cursor is of another search")
        return edition, (cents, part_id)


def read(pairs):
    """The parameters of a search; a search that goes on by its cursor alone has those of its cursor."""
    query = {"spec": [], "limit": "10"}
    seen = set()
    for name, value in pairs:
        if name not in ("q", "category", "max_unit_cost_usd", "max_weight_g", "spec", "limit", "cursor"):
            raise Refused(422, f"{name!r} is no parameter")
        if "\0" in value or (name in seen and name != "spec"):
            raise Refused(422, f"{name} is given twice, or holds U+0000")
        seen.add(name)
        if name == "spec":
            query["spec"].append(value)
        else:
            query[name] = value
    if len(query.get("q", "")) > 200 or len(query["spec"]) > 8:
        raise Refused(422, "q has 200 characters at most, and there are 8 specs at most")
    if not re.fullmatch(r"[0-9]{1,2}", query["limit"]) or not 1 <= int(query["limit"]) <= PAGE:
        raise Refused(422, f"limit is 1 to {PAGE}")
    query["limit"] = int(query["limit"])
    if query.get("category", "screw") not in CATEGORIES:
        raise Refused(422, f"category is one of {', '.join(CATEGORIES)}")
    return query


def amount(query, name, places):
    if not re.fullmatch(rf"[0-9]{{1,7}}(\.[0-9]{{1,{places}}})?", query[name]) or Decimal(query[name]) > 1_000_000:
        raise Refused(422, f"{name} is a number from 0 on, with {places} decimal places at most")
    return Decimal(query[name])


def constraints_of(query):
    """(name, asked, test, what an article has, its margin, how far it is off) of each constraint."""
    for word in query.get("q", "").split():
        folded = word.casefold()
        if FAULT == "words-are-patterns":
            folded = re.escape(folded).replace("%", ".*").replace("_", ".")
            yield "q", word, (lambda part, w=folded: any(re.search(w, each) for each in texts(part))), (lambda part: part["name"]), None, (lambda part: 1.0)
            continue
        yield "q", word, (lambda part, w=folded: any(w in each for each in texts(part))), (lambda part: part["name"]), None, (lambda part: 1.0)
    if "category" in query:
        of = query["category"]
        yield "category", of, (lambda part: part["category"] == of), (lambda part: part["category"]), None, (lambda part: 1.0)
    for name, field, places, unit in (("max_unit_cost_usd", "cents", 2, 100), ("max_weight_g", "milligrams", 3, 1000)):
        if name in query:
            most = amount(query, name, places)
            fits = (lambda part, m=most, f=field, u=unit: Decimal(part[f]) / u < m) if FAULT == "cap-left-out" else (
                lambda part, m=most, f=field, u=unit: Decimal(part[f]) / u <= m)
            yield (name, query[name], fits, lambda part, f=field, u=unit: Decimal(part[f]) / u,
                   lambda part, m=most, f=field, u=unit: m - Decimal(part[f]) / u,
                   lambda part, m=most, f=field, u=unit: off(Decimal(part[f]) / u, m))
    for spec in query["spec"]:
        yield spec_of(spec)


def spec_of(spec):
    found = re.fullmatch(r"([a-z_]+)(<=|>=|=)(.+)", spec)
    if not found or found[1] not in WORDS | NUMBERS:
        raise Refused(422, f"a spec is KEY=VALUE, KEY<=VALUE or KEY>=VALUE with a key of {', '.join(sorted(WORDS | NUMBERS))}; found {spec[:60]!r}, not {(found[1] if found else spec)[:40]}")
    key, sign, asked = found.groups()
    has = lambda part: part["specs"].get(key, "none")  # noqa: E731
    if key in WORDS:
        if sign != "=":
            raise Refused(422, f"{key} is a word: it equals, or does not")
        return spec, spec, (lambda part: str(has(part)).casefold() == asked.casefold() and key in part["specs"]), has, None, (lambda part: 1.0)
    if not NUMBER.fullmatch(asked):
        raise Refused(422, f"{key} is compared with a number")
    value = Decimal(asked)
    number = lambda part: Decimal(str(part["specs"][key]))  # noqa: E731
    compare = {"<=": lambda each: each <= value, ">=": lambda each: each >= value, "=": lambda each: each == value}[sign]
    margin = None if sign == "=" else (lambda part: (value - number(part)) * (1 if sign == "<=" else -1))
    return (spec, spec, lambda part: key in part["specs"] and compare(number(part)), has, margin,
            lambda part: off(number(part), value) if key in part["specs"] else 1.0)


def off(found, asked):
    """How far a number is from what was asked, from 0 to 1."""
    return float(abs(found - asked) / max(abs(found), abs(asked), Decimal("1e-9")))


def texts(part):
    yield from (part[name].casefold() for name in ("part_id", "name", "manufacturer", "category"))
    yield from (str(value).casefold() for value in part["specs"].values())


def place_of(part):
    return part["cents"], part["part_id"]


def costs(part):
    """Cost and mass; more of them cost no more each."""
    tiers = [{"from_quantity": count, "unit_cost_usd": f"{Decimal(max(1, part['cents'] * share // 100)) / 100:.2f}"} for count, share in TIERS]
    return {"part_id": part["part_id"], "category": part["category"], "unit_cost_usd": tiers[0]["unit_cost_usd"],
            "quantity_tiers": tiers, "weight_g": part["milligrams"] / 1000}


def candidate(part, edition, constraints):
    fit = []
    for name in dict.fromkeys(each[0] for each in constraints):
        asked = " ".join(each[1] for each in constraints if each[0] == name)
        _, _, _, has, margin, _ = next(each for each in constraints if each[0] == name)
        fit.append({"constraint": name, "found": str(has(part)), "margin": None if margin is None else float(margin(part)),
                    "says": f"{name} {asked}: it has {has(part)}"})
    rationale = "; ".join(each["says"] for each in fit) or "nothing was asked of it"
    return {**costs(part), "manufacturer": part["manufacturer"], "name": part["name"], "specs": part["specs"],
            "source": part["source"], "catalogue_version": edition, "fit": fit, "fit_rationale": rationale}


def no_match(articles, constraints):
    """The article that misses the fewest constraints, and of those the one that misses them least."""
    def missed(part):
        return [each for each in constraints if not each[2](part)]

    def far(part):
        wrong = missed(part)
        return len(wrong), sum(each[5](part) for each in wrong), place_of(part)

    nearest = min(articles, key=far)
    relax = []
    for each in missed(nearest):
        others = [one for one in constraints if one is not each]
        alone = any(all(one[2](part) for one in others) for part in articles)
        relax.append({"constraint": each[0], "asked": each[1], "found": str(each[3](nearest)), "alone": alone,
                      "says": f"leave {each[1]} out, or ask for {each[3](nearest)}"})
    short = {**costs(nearest), "manufacturer": nearest["manufacturer"], "name": nearest["name"]}
    del short["quantity_tiers"]
    return {"reason": "no part meets all of it", "relax": relax, "nearest": short}
