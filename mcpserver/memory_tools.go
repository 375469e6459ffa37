package mcpserver

import (
	"context"
)

// Limits of calls of the memory group.
const (
	maxRecall    = 100
	maxList      = 200
	maxForget    = 1000
	maxTTL       = 100 * 366 * 24 * 3600 // seconds
	defaultChars = 20_000
	maxChars     = 1_000_000
	maxFragment  = 1 << 16
)

func memoryTools() []tool {
	session := str("The session (conversation, task, user) of the memory")
	category := str("A category, such as preference, decision or fact")
	key := str("A name for the memory within its session and category")
	tags := array(str(""))
	where := array(str("")).described("Only where the metadata is as all of these say: source=desk, source!=desk, " +
		"priority>=3, path^=docs/ (begins so), tags=a,b (has one of them), source (has it), !source. A number and a text " +
		"have no order")
	// The filters of recall and list_memories.
	narrowed := func(more ...prop) []prop {
		return append([]prop{
			may("session", session.described("Only of this session")),
			may("category", category.described("Only of this category")), may("key", key.described("Only of this key")),
			may("tags", tags.described("Only with all of these tags")), may("where", where),
			may("since",
				str("Only of what happened at this time or later: 2026-11-22, 2026-11, 2026-11-22T10:00:00Z, yesterday, last "+
					"week, 7d, 3 days ago; in the server's zone unless one is given")),
			may("until",
				str("Only of what happened before this time, or within it if it is a day, week, month or year; in the server's "+
					"zone unless one is given")),
			may("created_since", str("As since, of when it was first written")),
			may("created_until", str("As until, of when it was first written")),
			may("updated_since", str("As since, of when it was last written")),
			may("updated_until", str("As until, of when it was last written")),
		}, more...)
	}
	limit := func(most, otherwise string, n int) *shape {
		return integer("Maximum number of results, up to "+most+"; default "+otherwise, 1, n)
	}
	chars := integer("Maximum number of characters of text in the answer; default 20000. The rest is on the next page",
		100, maxChars)
	memory := object(
		needs("id", str("")), needs("text", str("")),
		may("cut", &shape{kind: "boolean",
			about: "The text was shortened because it is longer than the answer may be, or category, key and tags were " +
				"omitted because they are"}),
		may("score", &shape{kind: "number"}), may("session", str("")), may("category", str("")), may("key", str("")),
		may("tags", tags),
		may("happened", str("RFC 3339, if not when it was written")), needs("written", str("RFC 3339")),
		may("expires", str("RFC 3339")), may("why", str("What the score is made of")),
	)
	note := may("note", str("Why nothing was found, where that looks like a mistake in the call"))
	return []tool{
		{
			"remember", "Remember",
			"Store something worth knowing later: a preference, a decision, a fact, a lesson learnt. It survives crashes and " +
				"is visible to every other agent on this store at once. With a key it replaces the memory with the same session, " +
				"category and key. Returns near-duplicates, if there are any: consider forgetting them",
			object(
				needs("text", str("What to remember, understandable on its own")), may("session", session),
				may("category", category), may("key", key),
				may("tags", tags.described("Words to find the memory by")),
				may("ttl", integer("Seconds after which the memory expires", 1, maxTTL)),
			),
			object(
				needs("id", str("")), needs("replaced", &shape{kind: "boolean", about: "A memory with this key was replaced"}),
				needs("near", array(object(needs("id", str("")), needs("text", str("")),
					needs("similarity", &shape{kind: "number", about: "1: identical"})))),
			),
			hints{},
			func(ctx context.Context, s *server, a args) (*answer, error) { return s.remember(ctx, a) },
		},
		{
			"recall", "Recall",
			"Find memories, best match first: by words, and by their meaning too if the server has an embedder. Also finds " +
				"entities and relations of the knowledge graph",
			object(
				append([]prop{needs("query",
					str(`What to search for, in plain words. Also "a phrase", rom* (words that begin so), +must, -not, tag:travel, tag:a OR tag:b (one of both)`))}, narrowed(
					may("by", oneOf("How to search; by default by both if possible, otherwise by words", recallBy...)),
					may("limit", limit("100", "10", maxRecall)), may("cursor", str("next of the previous page")),
					may("max_chars", chars),
					may("per_session", integer("At most so many memories of one session, the best of each; by default any number", 1,
						maxRecall)),
					may("fragment", integer("Of a longer text only the piece with the most of the words, of about so many bytes", 20,
						maxFragment)),
					may("explain", &shape{kind: "boolean", about: "Say of each memory why it was found"}),
					may("min_score", &shape{kind: "number",
						about: "Omit memories with a lower score. The scale of scores depends on how it searches: set by as well"}),
					may("share", &shape{kind: "number", about: "By both: the weight of meaning, words having 1; default 0.25"}),
					may("ranks", &shape{kind: "boolean",
						about: "By both: rank by the places by words and by meaning, not by the scores"}),
					may("recency", &shape{kind: "number",
						about: "Raise scores by up to so many times themselves, more for what happened later: 0.5 makes 4 at most 6. 0 " +
							"(the default) to 1000"}),
					may("half_life", &shape{kind: "number", about: "Days ago at which recency adds half as much; default 30"}),
					may("importance", &shape{kind: "number",
						about: "Raise scores by up to so many times themselves, by quickrecal_score from 0 to 1. 0 (the default) to 1000"}),
					may("sort",
						str("Show the best of a page in another order: timestamp (when it happened), created, updated or id; "+
							"-timestamp begins with the newest")),
				)...)...,
			).only(),
			object(needs("memories", array(memory)), needs("by", str("both, meaning or words")),
				may("next", str("The cursor of the next page; absent on the last page")), note),
			hints{readOnly: true, idempotent: true},
			func(ctx context.Context, s *server, a args) (*answer, error) { return s.recall(ctx, a) },
		},
		{
			"forget", "Forget",
			"Delete memories by their ids, all or none of them. Missing ids are reported and are not an error. Entities and " +
				"relations are deleted with delete_entities and delete_relations",
			object(
				needs("ids", array(str("")).described("The ids, as returned by remember, recall and list_memories")),
				may("session", session.described("Refuse if a memory belongs to another session")),
			),
			object(needs("forgotten", array(str(""))), needs("missing", array(str("")))),
			hints{destructive: true, idempotent: true},
			func(ctx context.Context, s *server, a args) (*answer, error) { return s.forget(ctx, a) },
		},
		{
			"list_memories", "List Memories",
			"List memories, page by page, in the order of their ids, which is the order of creation for memories without a " +
				"key, or in another; or list the sessions",
			object(
				narrowed(
					may("sort",
						str("Another order: timestamp (when it happened), created, updated, score, size or id; -updated begins with "+
							"what was written last")),
					may("sessions", &shape{kind: "boolean",
						about: "List all sessions instead, by their ids, with the number of their memories; no filters and no sort"}),
					may("limit", limit("200", "50", maxList)), may("cursor", str("next of the previous page")),
					may("max_chars", chars),
				)...,
			).only(),
			object(
				needs("memories", array(memory)),
				may("sessions", array(object(needs("session", str("")), needs("count", &shape{kind: "integer"}),
					needs("last_written", str("RFC 3339"))))),
				may("next", str("The cursor of the next page; absent on the last page")), note,
			),
			hints{readOnly: true, idempotent: true},
			func(ctx context.Context, s *server, a args) (*answer, error) { return s.listMemories(ctx, a) },
		},
	}
}
