package mcpserver

// Limits of the calls of the group memory.
const (
	maxRecall    = 100
	maxForget    = 1000
	maxTTL       = 100 * 366 * 24 * 3600 // maximum time to live, in seconds
	defaultChars = 20_000
	maxChars     = 1_000_000
	maxFragment  = 1 << 16
	maxBudget    = 1_000_000
	maxSession   = 1024 // maximum length in bytes of a session, a category and a key
)

// memoryTools returns the tools of the group memory. Their descriptions and schemas have at most 9 KB in all,
// since a client's model pays for them at every start; therefore tools without a title are listed in a short
// form.
func memoryTools() []tool {
	number, yes := &shape{kind: "number"}, &shape{kind: "boolean"}
	plain := str("")
	list := array(plain)
	id := str("id or its ending (10+ characters), as in answers")
	limit := func(most int) prop { return may("limit", integer("", 1, most)) }
	filters := []prop{
		may("session", plain), may("category", plain), may("key", plain), may("tags", list.described("has all")),
		may("where", list.described("metadata: source=desk, n>=3, path^=docs/, tags=a,b, has, !hasnot")),
		may("since", str("2026-11-22, 2026-11, yesterday, last week, 7d; of when it happened")), may("until", plain),
	}
	about := []prop{
		may("category", str("preference, decision, fact …")), may("tags", list),
		may("happened", str("when, if not now: 2026-11-22, yesterday, 3 days ago")),
		may("importance", number.described("0 to 1")), may("ttl", integer("seconds to live; 0: forever", 0, maxTTL)),
		may("pin", yes.described("context always shows it")), may("metadata", &shape{kind: "object", free: true}),
	}
	cursor, chars := may("cursor", str("of the previous page")), may("max_chars", integer("", 100, maxChars))
	join := func(a []prop, b ...prop) []prop { return append(append([]prop{}, a...), b...) }
	return []tool{
		{
			"context", "",
			"What to know now, in one call: pinned memories, those relevant to a task, recent ones. Call it first.",
			object(may("task", str("what you are about to do")), may("session", plain),
				may("budget", integer("tokens of the answer; default 1500", 1, maxBudget))).markClosed(),
			nil, hints{readOnly: true, idempotent: true}, memories((*memoryCall).context),
		},
		{
			"remember", "",
			"Store one fact, preference, decision or lesson for later; durable, visible to all agents of this project. Give " +
				"a key to what has one current value: it replaces what has the key in that session. Names near-duplicates, and " +
				"the call that settles them.",
			object(join([]prop{
				needs("text", str("understandable on its own; no secrets")), may("key", plain), may("session", plain),
			}, join(about,
				may("replaces", str("id of a memory that is no longer true; it stays, behind this one")),
				may("scope", oneOf("user: true in every project", "project", "user")),
			)...)...).markClosed(),
			rememberedShape(), hints{}, memories((*memoryCall).remember),
		},
		{
			"recall", "",
			"Find memories by words (and meaning, with an embedder), best first. A question about a time alone (what did I " +
				"say yesterday?) lists that time.",
			object(join([]prop{needs("query",
				str(`plain words; also "a phrase", rom*, +must, -not, tag:x OR tag:y`))}, join(filters,
				limit(maxRecall), cursor, chars, may("by", oneOf("", recallBy...)),
				may("per_session", integer("at most so many of a session", 1, maxRecall)),
				may("fragment", integer("bytes of the best piece", 20, maxFragment)),
				may("explain", yes), may("min_score", number), may("share", number.described("weight of meaning")),
				may("ranks", yes), may("recency", number), may("half_life", number.described("days, of recency")),
				may("importance", number), may("sort", str("timestamp, created, updated, id; -updated: newest first")),
				may("created_since", plain), may("created_until", plain), may("updated_since", plain),
				may("updated_until", plain))...)...).markClosed(),
			foundShape(), hints{readOnly: true, idempotent: true}, memories((*memoryCall).recall),
		},
		{
			"update", "",
			"Correct a memory: replace its text, or old by new in it, or append a line; set tags, ttl and the rest.",
			object(join([]prop{
				may("id", id), may("key", str("instead of id; with its session")), may("session", plain),
				may("text", str("the new text")), may("old", str("occurs once")), may("new", plain),
				may("append", plain)}, about...)...).markClosed(),
			changedShape(), hints{}, memories((*memoryCall).update),
		},
		{
			"recent", "",
			"What was written or happened in a time, newest first.",
			object(join([]prop{may("when", str("today, yesterday, last week, in March, 2026-11, 7d"))}, join(filters,
				may("writer", str("client, agent or session that wrote it")),
				limit(maxRecall), cursor, chars)...)...).markClosed(),
			foundShape(), hints{readOnly: true, idempotent: true}, memories((*memoryCall).recent),
		},
		{
			"forget", "",
			"Delete memories, all or none. Reversible: undo.",
			object(may("ids", list.described("ids or endings (10+)")), may("key", str("instead of ids; with its session")),
				may("session", str("refuse if one is of another session"))).markClosed(),
			forgottenShape(), hints{destructive: true, idempotent: true}, memories((*memoryCall).forget),
		},
		{
			"undo", "",
			"Take back your own last change (again: redo), one of your own by its version, or all since a time.",
			object(may("version", integer("from history", 1, 1<<53)), may("since", str("all that you wrote since")),
				may("preview", yes.described("only show it")),
				may("partial", yes.described("leave out what others built upon"))).markClosed(),
			nil, hints{destructive: true}, memories((*memoryCall).undo),
		},
		{
			"history", "",
			"All versions of a memory: when, by whom, the text.",
			object(may("id", str("id or ending (6+)")), may("key", str("instead of id; with its session")),
				may("session", plain), limit(maxRecall)).markClosed(),
			nil, hints{readOnly: true, idempotent: true}, memories((*memoryCall).history),
		},
	}
}

// The outputs, of which a server with Options.Structured says what they have.

func rememberedShape() *shape {
	return object(needs("id", str("")), needs("replaced", &shape{kind: "boolean"}),
		may("exists", &shape{kind: "boolean", about: "the text was there, and is not stored twice"}),
		needs("near", array(object(needs("id", str("")), needs("text", str("")), may("key", str("")),
			may("category", str("")), needs("written", str("RFC 3339")), needs("similarity", &shape{kind: "number"})))))
}

func foundShape() *shape {
	return object(needs("memories", array(object(
		needs("id", str("")), needs("text", str("")), may("cut", &shape{kind: "boolean"}),
		may("score", &shape{kind: "number"}),
		may("session", str("")), may("category", str("")), may("key", str("")), may("tags", array(str(""))),
		may("happened", str("RFC 3339")), needs("written", str("RFC 3339")), may("expires", str("RFC 3339")),
		may("shared", &shape{kind: "boolean"}), may("why", str("")),
	))), may("notes", array(object(needs("path", str("")), needs("from", integer("first line", 1, 1<<31-1)),
		needs("to", integer("last line", 1, 1<<31-1)), needs("text", str("")), may("cut", &shape{kind: "boolean"}),
		may("score", &shape{kind: "number"})))),
		may("by", str("")), may("next", str("")), may("note", str("")))
}

func changedShape() *shape { return object(needs("id", str("")), needs("text", str(""))) }

func forgottenShape() *shape {
	return object(needs("forgotten", array(str(""))), needs("missing", array(str(""))))
}
