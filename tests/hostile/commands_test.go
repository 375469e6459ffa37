//go:build linux || darwin

package hostile

import "strings"

// command is one run of memctl.
type command struct {
	name  string // the first words are those of the command
	args  []string
	first []string // run before it, as a part of it
	stdin string
	env   []string
	loses []string // the documents that it deletes
	takes []string // the inputs that it reads, besides the store; places of other groups
	store bool     // it works on the store
	ends  bool     // it may wait forever, as for a FIFO that it reads: SIGINT ends it
	room  int64    // resident bytes that it may have more than others: a line of an import is long
	mcp   bool     // stdin closes after the answers
	copy  bool     // it copies whatever is in the store
	gone  bool     // the store may be elsewhere afterwards
	heals bool     // verify has nothing to say afterwards
	usual int      // its exit code on the sound store
}

const requests = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"recall","arguments":{"query":"hello"}}}
{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"remember","arguments":{"text":"hello from hostile"}}}
{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"context","arguments":{"task":"hello"}}}
{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"update","arguments":{"id":"e","append":"more"}}}
{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"recent","arguments":{}}}
{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"history","arguments":{"id":"e"}}}
{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"undo","arguments":{}}}
{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"forget","arguments":{"ids":["none"]}}}
{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"recall","arguments":{"query":"of yesterday"}}}
`

// answers is the number of lines that the server sends.
const answers = 11

// commands returns all commands that are run. {box} in an argument is the box's folder.
func commands() []command {
	store := "{box}/" + storeDir
	all := []command{
		{name: "(none)"},
		{name: "status", args: []string{"status"}},
		{name: "status --json", args: []string{"status", "--json"}},
		{name: "doctor", args: []string{"doctor"}},
		{name: "doctor --json", args: []string{"doctor", "--json"}},
		{name: "put", args: []string{"put", "a new one", "--id", "new"}},
		{name: "put again", args: []string{"put", "hello from e", "--id", "e", "--session", "s1"}},
		{name: "put --file", args: []string{"put", "--file", "{box}/input/text.txt", "--id", "new"},
			takes: []string{"input/text.txt"}},
		{name: "put --json-input", args: []string{"put", "--json-input", "{box}/input/memory.json"},
			takes: []string{"input/memory.json"}},
		{name: "put --embedding", args: []string{"put", "x", "--id", "new", "--embedding", "{box}/input/vector.json"},
			takes: []string{"input/vector.json"}},
		{name: "get", args: []string{"get", "a", "big"}},
		{name: "list", args: []string{"list", "--json"}},
		{name: "search", args: []string{"search", "hello"}},
		{name: "search --like", args: []string{"search", "--like", "d"}},
		{name: "search --vector", args: []string{"search", "--vector", "{box}/input/vector.json"},
			takes: []string{"input/vector.json"}},
		{name: "edit", args: []string{"edit", "a"}, env: []string{"EDITOR=true", "VISUAL="}},
		{name: "rm", args: []string{"rm", "f"}, loses: []string{"memory f"}},
		{name: "purge", args: []string{"purge", "--yes", "f"}, loses: []string{"memory f"}},
		{name: "import from the store", args: []string{"--store", "{box}/out/imported", "import", store}},
		{name: "import", args: []string{"import", "{box}/input/source.jsonl"}, takes: []string{"input/source.jsonl"}},
		{name: "import folder", args: []string{"import", "{box}/input/synthians"}, takes: []string{"input/synthians"}},
		{name: "import graph", args: []string{"import", "{box}/input/graph.jsonl"}, takes: []string{"input/graph.jsonl"}},
		{name: "import -", args: []string{"import", "-"}, stdin: `{"id":"i1","content":"imported"}`},
		{name: "note import", args: []string{"note", "import", "{box}/input/synthians"},
			takes: []string{"input/synthians"}},
		// The folder is one that may change.
		{name: "note adopt", first: []string{"note", "export", "{box}/out/adopted"},
			args: []string{"note", "adopt", "{box}/out/adopted"}},
		{name: "note release", args: []string{"note", "release", "{box}/out/adopted"}},
		{name: "note write", args: []string{"note", "write", "new.md"}, stdin: "a new one"},
		{name: "note append", args: []string{"note", "append", "n.md"}, stdin: "more"},
		{name: "note export", args: []string{"note", "export", "{box}/out/notes"}},
		{name: "export", args: []string{"export"}},
		{name: "export --file", args: []string{"export", "--file", "{box}/out/all.jsonl"}},
		{name: "history", args: []string{"history", "a"}},
		{name: "log", args: []string{"log"}},
		// The last commit of memctl has replaced the text of this one.
		{name: "undo", args: []string{"undo", "--yes"}, loses: []string{"memory big"}},
		{name: "undo --run", args: []string{"undo", "--run", "unknown", "--plan"}},
		{name: "undelete", args: []string{"undelete", "gone", "a"}},
		{name: "revert", args: []string{"revert", "a", "64"}},
		{name: "diff", args: []string{"diff", "a@1", "a"}},
		{name: "watch", args: []string{"watch", "--since", "0", "--limit", "1"}, ends: true},
		{name: "service install", args: []string{"service", "install", "--print"}},
		{name: "service uninstall", args: []string{"service", "uninstall"}},
		{name: "backup", args: []string{"backup", "{box}/out/backup"}},
		{name: "backup --packed", args: []string{"backup", "--packed", "{box}/out/packed"}},
		{name: "backup --check, packed", args: []string{"backup", "--check", "{box}/packed"}, takes: []string{"packed"}},
		{name: "restore, packed", args: []string{"restore", "{box}/packed", "{box}/out/restored"}, takes: []string{"packed"}},
		{name: "backup --check", args: []string{"backup", "--check", "{box}/backup"}, takes: []string{"backup"}},
		{name: "restore", args: []string{"restore", "{box}/backup", "{box}/out/restored"}, takes: []string{"backup"}},
		{name: "restore --log", args: []string{"restore", "{box}/backup", "{box}/out/restored", "--log", store},
			takes: []string{"backup"}},
		{name: "migrate", args: []string{"migrate", "--to", "{box}/out/moved"}},
		{name: "migrate --switch", args: []string{"migrate", "--to", "{box}/out/moved", "--switch"}, gone: true},
		{name: "migrate begun", args: []string{"migrate", "--to", "{box}/begun"}, takes: []string{"begun"}},
		{name: "migrate begun --switch", args: []string{"migrate", "--to", "{box}/begun", "--switch", "--remove-source"},
			takes: []string{"begun"}, gone: true},
		{name: "remote add", args: []string{"remote", "add", "file://{box}/out/remote"}},
		{name: "remote remove", args: []string{"remote", "remove"}, usual: 4},
		{name: "remote snapshots", args: []string{"remote", "snapshots"}, usual: 4},
		{name: "remote verify", args: []string{"remote", "verify"}, usual: 4},
		{name: "remote follow", args: []string{"remote", "follow"}, usual: 4},
		{name: "remote take", args: []string{"remote", "take", "file://{box}/out/none"}, usual: 4},
		{name: "clone", args: []string{"clone", "file://{box}/out/none", "{box}/out/cloned"}, usual: 4},
		{name: "remote status", args: []string{"remote", "status"}},
		{name: "verify", args: []string{"verify"}},
		{name: "verify --json", args: []string{"verify", "--json"}},
		{name: "repair", args: []string{"repair"}},
		{name: "repair --apply", args: []string{"repair", "--apply"}, heals: true},
		{name: "quarantine list", args: []string{"quarantine", "list"}},
		{name: "quarantine show", args: []string{"quarantine", "show", "0123456789abcdef-x.json"}},
		{name: "quarantine restore", args: []string{"quarantine", "restore", "0123456789abcdef-x.json"}},
		{name: "quarantine drop", args: []string{"quarantine", "drop", "0123456789abcdef-x.json", "repair-9999.undo.jsonl",
			"--yes"}},
		{name: "quarantine drop at once", first: []string{"repair", "--apply"},
			args: []string{"quarantine", "drop", "--older-than", "1m", "--yes"}},
		{name: "rebuild-index", args: []string{"rebuild-index"}},
		{name: "reindex", args: []string{"reindex", "--cancel"}},
		{name: "flush", args: []string{"flush"}},
		{name: "init", args: []string{"init", store}},
		{name: "config", args: []string{"config"}},
		{name: "config list", args: []string{"config", "list"}},
		{name: "config get", args: []string{"config", "get", "flush_threshold"}},
		{name: "config set", args: []string{"config", "set", "flush_threshold", "7"}},
		{name: "config unset", args: []string{"config", "unset", "flush_threshold"}},
		{name: "mcp", args: []string{"mcp", "--store", store}, stdin: requests, mcp: true},
		{name: "serve token add", args: []string{"serve", "token", "add", "laptop", "--tokens", "{box}/out/tokens.json"}},
		{name: "serve token list", args: []string{"serve", "token", "list", "--tokens", "{box}/out/tokens.json"}},
		{name: "serve token remove", args: []string{"serve", "token", "remove", "laptop", "--tokens",
			"{box}/out/tokens.json"}},
		// It serves until it is told to end; what it reads of a store the other commands read too.
		{name: "ui --help", args: []string{"ui", "--help"}},
		{name: "demo", args: []string{"demo", "{box}/out/demo"}},
		{name: "manual", args: []string{"manual", "{box}/out/man"}},
		{name: "version", args: []string{"version"}},
		{name: "help", args: []string{"help"}},
	}
	for _, line := range []string{
		"project list", "project join x", "project move x {box}", "project merge prj-11111111111111111111111111111111 shared",
		"sessions list", "sessions show s1", "sessions sweep --older-than 30d", "sessions rm s3 --yes",
		"assembly list", "assembly show rome", "assembly put --id new --name x a", "assembly add milan d",
		"assembly remove rome b",
		"assembly activate rome", "assembly merge rome milan", "assembly rm milan",
		"note ls", "note cat n.md", "note edit n.md --old text --new texts", "note mv n.md d", "note rm n.md",
		"note grep text", "note log n.md", "note diff n.md", "note restore gone.md",
		"working list", "working get draft", "working set n 1", "working keys", "working rm draft", "working stats",
		"working task --status x",
		"working export", "working scratchpad list", "working scratchpad append x", "working scratchpad clear",
		"working checkpoint list", "working checkpoint create x", "working checkpoint show nothing",
		"working checkpoint diff nothing",
		"working checkpoint restore nothing", "working checkpoint rm nothing", "working drop",
	} {
		c := command{name: line, args: strings.Fields(line)}
		switch {
		case line == "working list", line == "working export":
		case c.args[0] == "working":
			c.args = append(c.args, "--scope", "session:s1")
		case line == "assembly merge rome milan":
			c.loses = []string{"assembly milan", "assembly rome"}
		case line == "assembly rm milan", line == "assembly add milan d":
			c.loses = []string{"assembly milan"}
		case line == "assembly remove rome b":
			c.loses = []string{"assembly rome"}
		}
		all = append(all, c)
	}
	for i := range all {
		c := &all[i]
		c.store = true
		c.ends = c.ends || c.takes != nil && c.args0() != "import" && c.name != "note import"
		c.copy = strings.HasSuffix(c.name, "--switch")
		if c.args0() == "import" || c.name == "note import" {
			c.room = 256 << 20
		}
		switch c.args0() {
		case "version", "help", "demo", "manual", "service", "serve", "ui", "completion":
			c.store = false
		}
		switch c.name {
		case "backup --check", "restore", "backup --check, packed", "restore, packed":
			c.store = false
		}
	}
	return all
}

func (c *command) args0() string {
	if len(c.args) == 0 {
		return ""
	}
	return c.args[0]
}
