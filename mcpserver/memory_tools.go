package mcpserver

import (
	"context"
)

// What a call of the memory group may ask for.
const (
	maxRecall    = 100
	maxList      = 200
	maxForget    = 1000
	maxTTL       = 100 * 366 * 24 * 3600 // seconds
	defaultChars = 20_000
	maxChars     = 1_000_000
)

func memoryTools() []tool {
	session := str("The session (conversation, task, user) that it belongs to")
	category := str("A category, such as preference, decision or fact")
	key := str("A name for it within session and category")
	tags := array(str(""))
	limit := func(most, otherwise string, n int) *shape {
		return integer("How many at most, up to "+most+"; "+otherwise+" if not given", 1, n)
	}
	chars := integer("How many characters of text the answer may hold; 20000 if not given. What does not fit comes with the next page", 100, maxChars)
	memory := object(
		needs("id", str("")), needs("text", str("")), may("cut", &shape{kind: "boolean", about: "The text is longer than what the answer may hold, or category, key and tags are, and are left out"}),
		may("score", &shape{kind: "number"}), may("session", str("")), may("category", str("")), may("key", str("")), may("tags", tags),
		needs("written", str("RFC 3339")), may("expires", str("RFC 3339")),
	)
	return []tool{
		{
			"remember", "Remember",
			"Store something worth knowing later: a preference, a decision, a fact, what was learnt. It survives crashes and is seen by every other agent on this store at once. With a key it replaces what was remembered under the same session, category and key. Returns memories that say nearly the same, if there are any: then consider to forget them",
			object(
				needs("text", str("What to remember, understandable on its own")), may("session", session), may("category", category), may("key", key),
				may("tags", tags.described("Words to find it by")), may("ttl", integer("Seconds after which it is forgotten by itself", 1, maxTTL)),
			),
			object(
				needs("id", str("")), needs("replaced", &shape{kind: "boolean", about: "There was one under this key"}),
				needs("near", array(object(needs("id", str("")), needs("text", str("")), needs("similarity", &shape{kind: "number", about: "1: the same"})))),
			),
			hints{},
			func(ctx context.Context, s *server, a args) (*answer, error) { return s.remember(ctx, a) },
		},
		{
			"recall", "Recall",
			"Find what was remembered, the best first: by meaning where the server has an embedder, else by words. Also finds entities and relations of the knowledge graph",
			object(
				needs("query", str("What to look for, in plain words")), may("session", session.described("Only of this session")),
				may("category", category.described("Only of this category")), may("key", key.described("Only of this key")),
				may("tags", tags.described("Only with all of these tags")),
				may("since", str("Only written at this time or later, RFC 3339")), may("until", str("Only written before this time, RFC 3339")),
				may("by", oneOf("How to look; where it is not given by meaning if that can be, else by words", "meaning", "words")),
				may("limit", limit("100", "10", maxRecall)), may("cursor", str("next of the page before")), may("max_chars", chars),
			),
			object(needs("memories", array(memory)), needs("by", str("meaning or words")), may("next", str("The cursor of the next page; none where there are no more"))),
			hints{readOnly: true, idempotent: true},
			func(ctx context.Context, s *server, a args) (*answer, error) { return s.recall(ctx, a) },
		},
		{
			"forget", "Forget",
			"Delete memories by their ids, all or none of them. What is not there is named and does no harm. Entities and relations are deleted with delete_entities and delete_relations",
			object(
				needs("ids", array(str("")).described("The ids, as remember, recall and list_memories give them")),
				may("session", session.described("Refuse if one of them belongs to another session")),
			),
			object(needs("forgotten", array(str(""))), needs("missing", array(str("")))),
			hints{destructive: true, idempotent: true},
			func(ctx context.Context, s *server, a args) (*answer, error) { return s.forget(ctx, a) },
		},
		{
			"list_memories", "List Memories",
			"List what is remembered, page by page, in the order of the ids, which is that of their creation where no key was given; or the sessions that there are",
			object(
				may("session", session.described("Only of this session")), may("category", category.described("Only of this category")),
				may("key", key.described("Only of this key")), may("tags", tags.described("Only with all of these tags")),
				may("sessions", &shape{kind: "boolean", about: "List the sessions instead, with how much they hold"}),
				may("limit", limit("200", "50", maxList)), may("cursor", str("next of the page before")), may("max_chars", chars),
			),
			object(
				needs("memories", array(memory)),
				may("sessions", array(object(needs("session", str("")), needs("count", &shape{kind: "integer"}), needs("last_written", str("RFC 3339"))))),
				may("next", str("The cursor of the next page; none where there are no more")),
			),
			hints{readOnly: true, idempotent: true},
			func(ctx context.Context, s *server, a args) (*answer, error) { return s.listMemories(ctx, a) },
		},
	}
}
