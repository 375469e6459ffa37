"""Compares a store with the files that it was imported from, by Python's own json.

usage: compare.py SOURCE STORE {synthians|vizor}

Ids, contents, metadata and numbers must be equal, named times the same instants,
and memory_index.json must name exactly the files with their sizes and hashes.
"""
import hashlib
import json
import os
import re
import sys
from datetime import datetime, timedelta, timezone

TIMES = {"timestamp", "last_access_time", "quickrecal_updated", "created_at", "updated_at", "expires_at"}
OLDER = {"text": "content", "significance": "quickrecal_score", "last_access": "last_access_time"}
OURS = {"created_at", "updated_at"}


def read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def instant(v):
    if v is None:
        return None
    if isinstance(v, (int, float)):
        if abs(v) >= 1e11:  # milliseconds
            v = v / 1000
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=v)
    t = datetime.fromisoformat(v.replace("Z", "+00:00"))
    return t if t.tzinfo else t.replace(tzinfo=timezone.utc)


def numbers(v):
    """An embedding that numpy had printed."""
    if isinstance(v, str):
        return [float(x) for x in re.findall(r"[^\s\[\],]+", v)]
    return v


def differences(source, stored):
    source = {OLDER.get(k, k): v for k, v in source.items()}
    for name in source.keys() | stored.keys():
        a, b = source.get(name), stored.get(name)
        if name not in source:
            if name not in OURS | {"timestamp"}:
                yield name, "is not in the source", b
        elif name not in stored:
            yield name, a, "is missing"
        elif name in TIMES:
            x, y = instant(a), instant(b)
            if name != "updated_at" and (x is None) != (y is None) or x and abs(x - y) > timedelta(microseconds=1):
                yield name, a, b
        elif name == "embedding":
            if b is not None and not isinstance(b, list):
                yield name, "a list of numbers", type(b).__name__
            elif numbers(a) != b:
                yield name, "numbers", "other numbers"
        elif a != b or type(a) is not type(b):
            yield name, a, b


def synthians(folder):
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json"):
            m = read(os.path.join(folder, name))
            if isinstance(m, dict) and "id" in m:
                yield m["id"], m


def vizor(folder):
    """Found by session, category and key: their ids are made up."""
    for name in sorted(os.listdir(folder)):
        s = read(os.path.join(folder, name))
        session = s.get("session_id") or os.path.splitext(name)[0]
        for category, keys in s["memories"].items():
            for key, r in keys.items():
                yield (session, category, key), r


def compare_vizor(r, m, found):
    session, category, key = found
    want = {**r.get("metadata", {}), "session_id": session, "category": category, "key": key}
    if m["metadata"] != want:
        yield "metadata", want, m["metadata"]
    value = r["value"] if isinstance(r["value"], str) else None
    if value is not None and m["content"] != value:
        yield "content", value, m["content"]
    if value is None and json.loads(m["content"]) != r["value"]:
        yield "content", r["value"], m["content"]
    if abs(instant(r["timestamp"]) - instant(m["timestamp"])) > timedelta(microseconds=1):
        yield "timestamp", r["timestamp"], m["timestamp"]


def main(source, store, form):
    bad = 0

    def wrong(*what):
        nonlocal bad
        bad += 1
        if bad <= 20:
            print(*[str(w)[:200] for w in what])

    index = read(os.path.join(store, "memory_index.json"))
    files = {}
    for name in os.listdir(os.path.join(store, "memories")):
        m = read(os.path.join(store, "memories", name))
        if m["id"] in files:
            wrong(m["id"], "has two files")
        files[m["id"]] = m
    if index["metadata"]["memory_count"] != len(files) or set(index["memories"]) != set(files):
        wrong("the index names", len(index["memories"]), "memories, there are", len(files))
    for id, e in index["memories"].items():
        path = os.path.join(store, e["filepath"])
        with open(path, "rb") as f:
            b = f.read()
        if len(b) != e["size"] or "sha256:" + hashlib.sha256(b).hexdigest() != e["content_hash"]:
            wrong(id, "size or hash in the index is not that of", path)
        if e["quickrecal_score"] != files[id].get("quickrecal_score", 0):
            wrong(id, "score", e["quickrecal_score"], files[id].get("quickrecal_score"))
        session = (files[id].get("metadata") or {}).get("session_id")
        if e.get("session_id") != session:
            wrong(id, "session", e.get("session_id"), session)
        if session and f"{session}\0{id}" not in index["by_session"]:
            wrong(id, "is not in by_session under", session)
    n = 0
    if form == "vizor":
        where = {tuple(m["metadata"][k] for k in ("session_id", "category", "key")): m for m in files.values()}
        for found, r in vizor(source):
            n += 1
            if found not in where:
                wrong(found, "is missing")
                continue
            for d in compare_vizor(r, where[found], found):
                wrong(found, *d)
    else:
        for id, m in synthians(source):
            n += 1
            if id not in files:
                wrong(id, "is missing")
                continue
            for d in differences(m, files[id]):
                wrong(id, *d)
    if n != len(files):
        wrong(n, "in the source,", len(files), "in the store")
    print(n, "compared,", bad, "wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
