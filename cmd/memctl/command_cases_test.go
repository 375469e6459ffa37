package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// commandCase is how a command is run on the store of storeOfCases, and what it waits for there. In
// args DIR stands for the folder around the store, FIRST for the first version of a, CHECKPOINT for
// the id of a checkpoint.
type commandCase struct {
	args   []string
	writes bool     // it wants the locks of writers
	opens  bool     // or those that opening a store wants
	plain  bool     // --json is refused
	stdin  []string // with these arguments it reads stdin, nil when it never does
	silent bool     // it prints nothing here that could wait
}

const oneScope = "session:s"

var commandCases = map[string]commandCase{
	"":                   {},
	"init":               {args: []string{"DIR/storage"}, opens: true},
	"put":                {args: []string{"x"}, writes: true, opens: true, stdin: []string{"-"}},
	"get":                {args: []string{"a"}, opens: true},
	"list":               {opens: true},
	"search":             {args: []string{"text"}, opens: true, stdin: []string{"--vector", "-"}},
	"edit":               {args: []string{"a"}, opens: true},
	"rm":                 {args: []string{"a"}, writes: true, opens: true},
	"purge":              {args: []string{"a", "--yes"}, writes: true, opens: true},
	"history":            {args: []string{"a"}, opens: true},
	"log":                {opens: true},
	"undo":               {args: []string{"--yes"}, writes: true, opens: true},
	"undelete":           {args: []string{"gone"}, writes: true, opens: true},
	"revert":             {args: []string{"a", "FIRST"}, writes: true, opens: true},
	"diff":               {args: []string{"a@FIRST", "a"}, opens: true},
	"watch":              {args: []string{"--since", "0"}, opens: true},
	"service":            {},
	"service install":    {args: []string{"--print"}, plain: true},
	"service uninstall":  {},
	"import":             {args: []string{"DIR/lines.jsonl"}, writes: true, opens: true, stdin: []string{"-"}},
	"export":             {opens: true, plain: true},
	"backup":             {args: []string{"DIR/backup"}, opens: true},
	"restore":            {args: []string{"DIR/saved", "DIR/restored"}},
	"migrate":            {args: []string{"--to", "DIR/moved"}, opens: true},
	"remote":             {},
	"remote add":         {args: []string{"file://DIR/remote"}, opens: true},
	"remote status":      {opens: true},
	"remote verify":      {opens: true},
	"remote snapshots":   {opens: true},
	"remote take":        {args: []string{"file://DIR/remote"}},
	"remote remove":      {}, // of a store without a copy it opens nothing
	"remote follow":      {opens: true},
	"clone":              {args: []string{"file://DIR/remote", "DIR/cloned"}},
	"status":             {},
	"verify":             {},
	"doctor":             {},
	"repair":             {args: []string{"--apply"}},
	"quarantine":         {},
	"quarantine list":    {opens: true},
	"quarantine show":    {args: []string{"aside.json"}, opens: true},
	"quarantine restore": {args: []string{"aside.json"}, writes: true, opens: true},
	"quarantine drop":    {args: []string{"aside.json", "--yes"}, writes: true, opens: true},
	"rebuild-index":      {writes: true, opens: true},
	"reindex":            {args: []string{"--cancel"}, opens: true},
	"flush":              {writes: true, opens: true},
	"config":             {},
	"config list":        {},
	"config get":         {args: []string{"at_limit"}},
	"config set":         {args: []string{"max_bytes", "1000000"}, opens: true},
	"config unset":       {args: []string{"max_bytes"}, opens: true},
	"demo":               {args: []string{"DIR/demo"}},
	"mcp":                {opens: true, plain: true, stdin: []string{}},
	"project":            {},
	"project list":       {opens: true},
	"project join":       {args: []string{"x"}},
	"project move":       {args: []string{"x", "DIR"}},
	"project merge":      {args: []string{"prj-11111111111111111111111111111111", "shared"}, opens: true},
	"serve": {args: []string{"--addr", "127.0.0.1:0", "--tokens", "DIR/tokens.json"}, opens: true,
		plain:  true,
		silent: true},
	"ui":                 {args: []string{"--no-open", "--addr", "127.0.0.1:0"}, opens: true, plain: true},
	"serve token":        {},
	"serve token add":    {args: []string{"laptop", "--tokens", "DIR/tokens.json"}},
	"serve token list":   {args: []string{"--tokens", "DIR/tokens.json"}},
	"serve token remove": {args: []string{"laptop", "--tokens", "DIR/tokens.json"}},
	"manual":             {args: []string{"DIR/man"}},
	"version":            {},
	"help":               {},
	"sessions":           {},
	"sessions list":      {opens: true},
	"sessions show":      {args: []string{"s"}, opens: true},
	"sessions rm":        {args: []string{"--yes", "s"}, writes: true, opens: true},
	"sessions sweep":     {args: []string{"--keep", "1", "--apply"}, writes: true, opens: true},
	"assembly":           {},
	"assembly list":      {opens: true},
	"assembly show":      {args: []string{"g"}, opens: true},
	"assembly put": {args: []string{"a", "--id", "h", "--name", "h"}, writes: true, opens: true,
		stdin: []string{"--json-input", "-"}},
	"assembly add":       {args: []string{"g", "b"}, writes: true, opens: true},
	"assembly remove":    {args: []string{"g", "a"}, writes: true, opens: true},
	"assembly merge":     {args: []string{"g", "g2"}, writes: true, opens: true},
	"assembly activate":  {args: []string{"g"}, writes: true, opens: true},
	"assembly rm":        {args: []string{"g"}, writes: true, opens: true},
	"note":               {},
	"note ls":            {opens: true},
	"note cat":           {args: []string{"n"}, opens: true},
	"note write":         {args: []string{"n"}, writes: true, opens: true, stdin: []string{"n2"}},
	"note append":        {args: []string{"n"}, opens: true, stdin: []string{"n2"}}, // nothing, so that it writes nothing
	"note edit":          {args: []string{"n", "--old", "text", "--new", "x"}, writes: true, opens: true},
	"note mv":            {args: []string{"n", "n2"}, writes: true, opens: true},
	"note rm":            {args: []string{"n"}, writes: true, opens: true},
	"note grep":          {args: []string{"text"}, opens: true},
	"note log":           {args: []string{"n"}, opens: true},
	"note diff":          {args: []string{"n", "NOTE"}, opens: true},
	"note restore":       {args: []string{"n", "NOTE"}, writes: true, opens: true},
	"note import":        {args: []string{"DIR/folder"}, writes: true, opens: true},
	"note export":        {args: []string{"DIR/exported"}, opens: true},
	"note adopt":         {args: []string{"DIR/folder"}, writes: true, opens: true},
	"note release":       {args: []string{"DIR/adopted"}, opens: true}, // in a copy it is not adopted
	"working":            {},
	"working checkpoint": {},
	"working scratchpad": {},
	"working list":       {opens: true},
	"working stats":      {args: []string{"--scope", oneScope}, opens: true},
	"working drop":       {args: []string{"--scope", oneScope}, writes: true, opens: true},
	"working export":     {opens: true, plain: true},
	"working get":        {args: []string{"k", "--scope", oneScope}, opens: true},
	"working set": {args: []string{"k", "1", "--scope", oneScope}, writes: true, opens: true,
		stdin: []string{"k", "-", "--scope", oneScope}},
	"working rm":                 {args: []string{"k", "--scope", oneScope}, writes: true, opens: true},
	"working keys":               {args: []string{"--scope", oneScope}, opens: true},
	"working task":               {args: []string{"--scope", oneScope}, opens: true},
	"working scratchpad list":    {args: []string{"--scope", oneScope}, opens: true},
	"working scratchpad append":  {args: []string{"x", "--scope", oneScope}, writes: true, opens: true},
	"working scratchpad clear":   {args: []string{"--scope", oneScope}, writes: true, opens: true},
	"working checkpoint create":  {args: []string{"x", "--scope", oneScope}, writes: true, opens: true},
	"working checkpoint list":    {args: []string{"--scope", oneScope}, opens: true},
	"working checkpoint show":    {args: []string{"CHECKPOINT", "--scope", oneScope}, opens: true},
	"working checkpoint restore": {args: []string{"CHECKPOINT", "--scope", oneScope}, writes: true, opens: true},
	"working checkpoint diff":    {args: []string{"CHECKPOINT", "--scope", oneScope}, opens: true},
	"working checkpoint rm":      {args: []string{"CHECKPOINT", "--scope", oneScope}, writes: true, opens: true},
	"completion":                 {silent: true, plain: true},
	"completion bash":            {plain: true},
	"completion fish":            {plain: true},
	"completion powershell":      {plain: true},
	"completion zsh":             {plain: true},
}

// storeOfCases makes what each case gets a copy of, and the words of its arguments.
func storeOfCases(t *testing.T, dir string) *strings.Replacer {
	c := &inProcess{t, dir}
	in := func(args ...string) string { return c.ok(append(args, "--store", c.store())...) }
	in("init", c.store())
	var first struct{ Memories []struct{ Version uint64 } }
	if err := json.Unmarshal([]byte(in("put", "text", "--id", "a", "--session", "s", "--json")), &first); err != nil {
		t.Fatal(err)
	}
	in("put", "other text", "--id", "a", "--session", "s")
	in("put", "text", "--id", "b", "--session", "s2")
	in("put", "text", "--id", "gone", "--session", "s2")
	in("rm", "gone")
	in("assembly", "put", "a", "--id", "g", "--name", "g")
	in("assembly", "put", "b", "--id", "g2", "--name", "g2")
	note := func(text string) (n struct{ Version uint64 }) {
		code, out, _ := c.run(text, "note", "write", "n", "--json", "--store", c.store())
		if err := json.Unmarshal([]byte(out), &n); err != nil || code != 0 {
			t.Fatal(code, err, out)
		}
		return n
	}
	noted := note("first text")
	note("text")
	in("working", "set", "k", "1", "--scope", oneScope)
	in("working", "task", "--description", "x", "--scope", oneScope)
	in("working", "scratchpad", "append", "x", "--scope", oneScope)
	in("backup", filepath.Join(dir, "saved"))
	writeFile(t, filepath.Join(c.store(), "quarantine", "aside.json"), `{"id":"aside","content":"x"}`)
	writeFile(t, filepath.Join(dir, "lines.jsonl"), `{"id":"n","content":"x"}`+"\n")
	writeFile(t, filepath.Join(dir, "folder", "imported.md"), "x")
	writeFile(t, filepath.Join(dir, "adopted", "adopted.md"), "x")
	in("note", "adopt", filepath.Join(dir, "adopted"))
	var made struct{ Checkpoint struct{ ID string } }
	if err := json.Unmarshal([]byte(in("working", "checkpoint", "create", "x", "--scope", oneScope, "--json")),
		&made); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("FIRST", fmt.Sprint(first.Memories[0].Version), "CHECKPOINT", made.Checkpoint.ID,
		"NOTE", fmt.Sprint(noted.Version))
}

// eachCommand calls f for every command, with its arguments, except for those in the list except,
// whose name is list. words are those of storeOfCases.
func eachCommand(t *testing.T, dir string, words *strings.Replacer, except []string, list string,
	f func(name string, c commandCase, args []string)) {
	t.Helper()
	everyCommand(t, commandCases, "commandCases (command_cases_test.go)")
	for _, name := range except {
		if _, ok := commandCases[name]; !ok {
			t.Errorf("%s: there is no command memctl %s", list, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(commandCases)) {
		if slices.Contains(except, name) {
			continue
		}
		c := commandCases[name]
		f(name, c, c.with(name, dir, words))
	}
}

// with is the command with its arguments.
func (c *commandCase) with(name, dir string, words *strings.Replacer) []string {
	args := strings.Fields(name)
	for _, arg := range c.args {
		args = append(args, words.Replace(strings.ReplaceAll(arg, "DIR", dir)))
	}
	return args
}
