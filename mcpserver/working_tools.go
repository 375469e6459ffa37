package mcpserver

import "context"

// workingTools returns the tools of working memory. Working memory is for data that an agent needs within one session.
func workingTools() []tool {
	scope := []prop{
		needs("session", str("The session (conversation, task) that has the working memory")),
		may("project", str("The project of the session")), may("agent", str("The agent instance of the session")),
	}
	in := func(more ...prop) *shape { return object(append(append([]prop{}, scope...), more...)...) }
	key := str("A key of 1 to 1024 bytes that does not begin with _")
	value := object(needs("key", str("")), needs("value", str("A text unchanged, everything else as JSON")),
		needs("json", &shape{kind: "boolean", about: "value is JSON"}),
		may("expires_in", &shape{kind: "number", about: "Seconds"}))
	note := object(needs("seq", &shape{kind: "integer"}), needs("text", str("")), needs("written", str("RFC 3339")))
	checkpoint := object(needs("id", str("")), needs("description", str("")), needs("written", str("RFC 3339")),
		needs("keys", &shape{kind: "integer"}), needs("notes", &shape{kind: "integer"}))
	task := object(needs("set", &shape{kind: "boolean", about: "A task state is set"}), needs("description", str("")),
		needs("status", str("")),
		needs("step", &shape{kind: "integer"}), needs("steps", &shape{kind: "integer"}),
		needs("progress", &shape{kind: "number", about: "Percent"}))
	id := str("The id of a checkpoint, as returned by working_checkpoints")
	run := func(f func(ctx context.Context, w *workingCall) (any, error)) func(context.Context, *server, args) (*answer,
		error) {
		return func(ctx context.Context, s *server, a args) (*answer, error) { return s.working(ctx, a, f) }
	}
	return []tool{
		{
			"working_set", "Set Working Value",
			"Store a value in the working memory of a session: what the task needs now, and no later task needs. It survives " +
				"crashes",
			in(needs("key", key), needs("value", str("The value: a text, or JSON if json is true")),
				may("json", &shape{kind: "boolean", about: "The value is JSON, and is stored as JSON"}),
				may("ttl", integer("Seconds after which the value expires", 0, maxTTL)),
				may("if_absent", &shape{kind: "boolean", about: "Only if the key has no value"})),
			object(needs("set", &shape{kind: "boolean", about: "false: the key has a value, and if_absent was true"})),
			hints{idempotent: true}, run(func(ctx context.Context, w *workingCall) (any, error) { return w.set(ctx) }),
		},
		{
			"working_get", "Get Working Values",
			"Read values of a session's working memory, as of one moment: those of some keys, or all with a key that matches " +
				"a pattern",
			in(may("keys", array(str("")).described("Only these keys; by default all keys that match the pattern")),
				may("pattern", str("* matches any run of characters, ? one character, [a-z] one of a set; default *"))),
			object(needs("values", array(value))),
			hints{readOnly: true, idempotent: true},
			run(func(ctx context.Context, w *workingCall) (any, error) { return w.get(ctx) }),
		},
		{
			"working_delete", "Delete Working Values",
			"Delete values of a session's working memory; missing keys are not an error",
			in(needs("keys", array(str("")).described("The keys to delete"))),
			object(needs("deleted", array(str(""))), needs("missing", array(str("")))),
			hints{destructive: true, idempotent: true},
			run(func(ctx context.Context, w *workingCall) (any, error) { return w.delete(ctx) }),
		},
		{
			"working_task", "Task State",
			"Read the state of the session's task; members that are given are changed first",
			in(may("description", str("Description of the task")), may("status", str("Status of the task")),
				may("step", integer("Number of the current step", 0, 1<<31-1)),
				may("steps", integer("Total number of steps", 0, 1<<31-1)), may("progress", integer("Percent", 0, 100))),
			task, hints{idempotent: true}, run(func(ctx context.Context, w *workingCall) (any, error) { return w.task(ctx) }),
		},
		{
			"working_note", "Append to Scratchpad",
			"Append a note to the session's scratchpad: a step of reasoning, an observation",
			in(needs("text", str("The note"))), note, hints{},
			run(func(ctx context.Context, w *workingCall) (any, error) { return w.note(ctx) }),
		},
		{
			"working_notes", "Read Scratchpad",
			"Read the last notes of the session's scratchpad, oldest first",
			in(may("last", integer("Maximum number of notes; default 50", 1, 10_000))),
			object(needs("notes", array(note))), hints{readOnly: true, idempotent: true},
			run(func(ctx context.Context, w *workingCall) (any, error) { return w.notes(ctx) }),
		},
		{
			"working_checkpoint", "Create Checkpoint",
			"Save the current state of the session's working memory, to restore it later: values, task state, scratchpad",
			in(may("description", str("Description of the checkpoint"))), checkpoint, hints{},
			run(func(ctx context.Context, w *workingCall) (any, error) { return w.checkpoint(ctx) }),
		},
		{
			"working_checkpoints", "List Checkpoints",
			"List the checkpoints of a session, oldest first",
			in(), object(needs("checkpoints", array(checkpoint))), hints{readOnly: true, idempotent: true},
			run(func(ctx context.Context, w *workingCall) (any, error) { return w.checkpoints(ctx) }),
		},
		{
			"working_restore", "Restore Checkpoint",
			"Restore a checkpoint, in one step. The previous state becomes a checkpoint, which is returned: restoring it " +
				"undoes this",
			in(needs("id", id)), checkpoint, hints{destructive: true},
			run(func(ctx context.Context, w *workingCall) (any, error) { return w.restore(ctx) }),
		},
	}
}
