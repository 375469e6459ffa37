// Command memctl works on a Varve store from the shell. It is thin: what a
// store does is done by package varve and those below it; here are arguments,
// words and exit codes.
//
// # The store
//
// Named by --store, by MEMCTL_STORE, or else the nearest folder, from the
// current one upwards, that is a store (its config.json has the member "varve")
// or holds a folder storage/ that is one. Only init makes a store, and import
// where the store was named. Commands that write flush before they end; those
// that read open the store read-only where it cannot be written; status, config
// and verify always do, but that status makes of a clone a store.
//
// # Output
//
// Results go to stdout, all else to stderr. With --json exactly one document is
// on stdout, a JSON object, also when the command fails:
//
//	put      {"memories":[{"id","version"}]}          version is missing where many were put at once
//	get      {"memories":[{"id","version","memory":{…}}]}
//	list     {"memories":[{"id","version","content",…}],"next":"<id>"|null}
//	search   {"by":"words"|"meaning"|"like"|"vector","hits":[{"id","score","version","content",…}],"next":<offset>|null}
//	rm       {"deleted":["<id>"]}
//	import   {"from","source","store","new","same","kept","replaced","refused","problems":[…],
//	          "assemblies":{"new","same","kept","replaced","refused"},
//	          "members":[{"of","name","count","as"}],"files":[{"path","what"}]}
//	assembly {"assemblies":[…],"next":…} as list, {"assemblies":[{"id","version","assembly":{…}}]} as show,
//	          {"assemblies":[{"id","version","member_count"}]} for what changes one, {"deleted":["<id>"]}
//	working  {"scopes":[…]} as list, {"values":[{"key","value","version","updated_at","ttl_seconds"}]}, {"keys":[…]}, {"task":{…}},
//	          {"entries":[…]}, {"checkpoints":[…]}, {"stats":{…}}, {"deleted":[…]}, {"removed":<n>}
//	sessions {"sessions":[{"id","memories","bytes","first","last"}]} as list and show, {"sessions":[{"id","deleted"}]} as rm,
//	          {"sessions":[{…,"deleted","spared"}],"applied"} as sweep
//	reindex  {"total","resumed","computed","written","changed"}, with --missing {"embedded"}, with --cancel {"canceled"}: the model that was to come
//	verify   {"findings":[{"kind","severity","path","offset","id","lsn","message","stake","heals","next"}],"summary":{…}}
//	repair   {"actions":[{"do","path","id","from","loses","alone","for":[…]}],"processes":[…]}
//	 --apply {"repair":"<id>","actions":[{…,"result","where","error"}],"remaining":[…],"waiting":[…],"processes":[…],"summary":{…}}
//	 --undo  {"undone":[…],"left":[…]}
//	any      {…,"error":{"kind","message","path","fix"}}    the gravest; all of several in "errors"
//
// The other commands' members are the names of their struct tags.
//
// # Exit codes
//
// See exitcode.go. Of several failures the gravest decides; those that do not
// end the command (one of several ids is missing) let the rest go on.
//
// # How it is laid out
//
// A command is a file. run is the whole program with its streams and its
// environment passed in; app is what the commands share.
package main
