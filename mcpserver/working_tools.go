package mcpserver

import "context"

// workingTools are those of working memory: what an agent has in hand within one
// session.
func workingTools() []tool {
	scope := []prop{
		needs("session", str("The session (conversation, task) whose working memory it is")),
		may("project", str("The project that the session is within")), may("agent", str("The instance of an agent whose session it is")),
	}
	in := func(more ...prop) *shape { return object(append(append([]prop{}, scope...), more...)...) }
	key := str("A key of 1 to 1024 bytes that does not begin with _")
	value := object(needs("key", str("")), needs("value", str("A text as it is, everything else as JSON")),
		needs("json", &shape{kind: "boolean", about: "value is JSON"}), may("expires_in", &shape{kind: "number", about: "Seconds"}))
	note := object(needs("seq", &shape{kind: "integer"}), needs("text", str("")), needs("written", str("RFC 3339")))
	checkpoint := object(needs("id", str("")), needs("description", str("")), needs("written", str("RFC 3339")),
		needs("keys", &shape{kind: "integer"}), needs("notes", &shape{kind: "integer"}))
	task := object(needs("set", &shape{kind: "boolean", about: "There is one"}), needs("description", str("")), needs("status", str("")),
		needs("step", &shape{kind: "integer"}), needs("steps", &shape{kind: "integer"}), needs("progress", &shape{kind: "number", about: "Percent"}))
	id := str("The id of a checkpoint, as working_checkpoints gives it")
	run := func(f func(ctx context.Context, w *workingCall) (any, error)) func(context.Context, *server, args) (*answer, error) {
		return func(ctx context.Context, s *server, a args) (*answer, error) { return s.working(ctx, a, f) }
	}
	return []tool{
		{
			"working_set", "Set Working Value",
			"Keep a value in the working memory of a session: what the task needs now, and nobody after it. It survives crashes",
			in(needs("key", key), needs("value", str("The value: a text, or JSON where json is true")),
				may("json", &shape{kind: "boolean", about: "The value is JSON, and is kept as such"}),
				may("ttl", integer("Seconds after which it is gone by itself", 0, maxTTL)),
				may("if_absent", &shape{kind: "boolean", about: "Only where there is none"})),
			object(needs("set", &shape{kind: "boolean", about: "false: there was one, and if_absent was true"})),
			hints{idempotent: true}, run(func(ctx context.Context, w *workingCall) (any, error) { return w.set(ctx) }),
		},
		{
			"working_get", "Get Working Values",
			"Read values of a session's working memory: those of some keys, or all whose key matches a pattern, as they are at one moment",
			in(may("keys", array(str("")).described("These keys; without them all that match")), may("pattern", str("* is any run of characters, ? one, [a-z] one of a set; * if not given"))),
			object(needs("values", array(value))),
			hints{readOnly: true, idempotent: true}, run(func(ctx context.Context, w *workingCall) (any, error) { return w.get(ctx) }),
		},
		{
			"working_delete", "Delete Working Values",
			"Delete values of a session's working memory; what is not there does no harm",
			in(needs("keys", array(str("")).described("Their keys"))),
			object(needs("deleted", array(str(""))), needs("missing", array(str("")))),
			hints{destructive: true, idempotent: true}, run(func(ctx context.Context, w *workingCall) (any, error) { return w.delete(ctx) }),
		},
		{
			"working_task", "Task State",
			"Read the state of the session's task; with any of its members, change these first",
			in(may("description", str("What it is about")), may("status", str("Where it is")), may("step", integer("The current step", 0, 1<<31-1)),
				may("steps", integer("How many steps there are", 0, 1<<31-1)), may("progress", integer("Percent", 0, 100))),
			task, hints{idempotent: true}, run(func(ctx context.Context, w *workingCall) (any, error) { return w.task(ctx) }),
		},
		{
			"working_note", "Append to Scratchpad",
			"Append a note to the session's scratchpad: a step of reasoning, an observation",
			in(needs("text", str("The note"))), note, hints{}, run(func(ctx context.Context, w *workingCall) (any, error) { return w.note(ctx) }),
		},
		{
			"working_notes", "Read Scratchpad",
			"Read the last notes of the session's scratchpad, oldest first",
			in(may("last", integer("How many; 50 if not given", 1, 10_000))),
			object(needs("notes", array(note))), hints{readOnly: true, idempotent: true}, run(func(ctx context.Context, w *workingCall) (any, error) { return w.notes(ctx) }),
		},
		{
			"working_checkpoint", "Make Checkpoint",
			"Keep the present state of the session's working memory, to go back to it: values, state of the task, scratchpad",
			in(may("description", str("What it is for"))), checkpoint, hints{}, run(func(ctx context.Context, w *workingCall) (any, error) { return w.checkpoint(ctx) }),
		},
		{
			"working_checkpoints", "List Checkpoints",
			"List the checkpoints of a session, oldest first",
			in(), object(needs("checkpoints", array(checkpoint))), hints{readOnly: true, idempotent: true}, run(func(ctx context.Context, w *workingCall) (any, error) { return w.checkpoints(ctx) }),
		},
		{
			"working_restore", "Restore Checkpoint",
			"Go back to a checkpoint, in one step. What there was before becomes a checkpoint, which is returned: restoring that one undoes this",
			in(needs("id", id)), checkpoint, hints{destructive: true}, run(func(ctx context.Context, w *workingCall) (any, error) { return w.restore(ctx) }),
		},
	}
}
