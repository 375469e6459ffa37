package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// commandCase is how a command is run on the store of storeToWaitIn, and what it waits for there. In
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
	"":                           {},
	"init":                       {args: []string{"DIR/storage"}, opens: true},
	"put":                        {args: []string{"x"}, writes: true, opens: true, stdin: []string{"-"}},
	"get":                        {args: []string{"a"}, opens: true},
	"list":                       {opens: true},
	"search":                     {args: []string{"text"}, opens: true, stdin: []string{"--vector", "-"}},
	"edit":                       {args: []string{"a"}, opens: true},
	"rm":                         {args: []string{"a"}, writes: true, opens: true},
	"purge":                      {args: []string{"a", "--yes"}, writes: true, opens: true},
	"history":                    {args: []string{"a"}, opens: true},
	"diff":                       {args: []string{"a@FIRST", "a"}, opens: true},
	"watch":                      {args: []string{"--since", "0"}, opens: true},
	"service":                    {},
	"service install":            {args: []string{"--print"}, plain: true},
	"service uninstall":          {},
	"import":                     {args: []string{"DIR/lines.jsonl"}, writes: true, opens: true, stdin: []string{"-"}},
	"export":                     {opens: true, plain: true},
	"backup":                     {args: []string{"DIR/backup"}, opens: true},
	"restore":                    {args: []string{"DIR/saved", "DIR/restored"}},
	"migrate":                    {args: []string{"--to", "DIR/moved"}, opens: true},
	"status":                     {},
	"verify":                     {},
	"repair":                     {args: []string{"--apply"}},
	"rebuild-index":              {writes: true, opens: true},
	"reindex":                    {args: []string{"--cancel"}, opens: true},
	"flush":                      {writes: true, opens: true},
	"config":                     {},
	"config list":                {},
	"config get":                 {args: []string{"at_limit"}},
	"config set":                 {args: []string{"max_bytes", "1000000"}, opens: true},
	"config unset":               {args: []string{"max_bytes"}, opens: true},
	"demo":                       {args: []string{"DIR/demo"}},
	"mcp":                        {opens: true, plain: true, stdin: []string{}},
	"manual":                     {args: []string{"DIR/man"}},
	"version":                    {},
	"help":                       {},
	"sessions":                   {},
	"sessions list":              {opens: true},
	"sessions show":              {args: []string{"s"}, opens: true},
	"sessions rm":                {args: []string{"s"}, writes: true, opens: true},
	"sessions sweep":             {args: []string{"--keep", "1", "--apply"}, writes: true, opens: true},
	"assembly":                   {},
	"assembly list":              {opens: true},
	"assembly show":              {args: []string{"g"}, opens: true},
	"assembly put":               {args: []string{"a", "--id", "h", "--name", "h"}, writes: true, opens: true, stdin: []string{"--json-input", "-"}},
	"assembly add":               {args: []string{"g", "b"}, writes: true, opens: true},
	"assembly remove":            {args: []string{"g", "a"}, writes: true, opens: true},
	"assembly merge":             {args: []string{"g", "g2"}, writes: true, opens: true},
	"assembly activate":          {args: []string{"g"}, writes: true, opens: true},
	"assembly rm":                {args: []string{"g"}, writes: true, opens: true},
	"working":                    {},
	"working checkpoint":         {},
	"working scratchpad":         {},
	"working list":               {opens: true},
	"working stats":              {args: []string{"--scope", oneScope}, opens: true},
	"working drop":               {args: []string{"--scope", oneScope}, writes: true, opens: true},
	"working export":             {opens: true, plain: true},
	"working get":                {args: []string{"k", "--scope", oneScope}, opens: true},
	"working set":                {args: []string{"k", "1", "--scope", oneScope}, writes: true, opens: true, stdin: []string{"k", "-", "--scope", oneScope}},
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

// eachCommand gives every command, with arguments, but for those that a test has a reason to leave
// out; where says which list that is.
func eachCommand(t *testing.T, dir string, but []string, where string, f func(name string, c commandCase, args []string)) {
	t.Helper()
	everyCommand(t, commandCases, "commandCases (command_cases_test.go)")
	for _, name := range but {
		if _, ok := commandCases[name]; !ok {
			t.Errorf("%s: there is no command memctl %s", where, name)
		}
	}
	words := strings.NewReplacer("DIR", dir, "FIRST", "1", "CHECKPOINT", "1")
	for _, name := range slices.Sorted(maps.Keys(commandCases)) {
		if slices.Contains(but, name) {
			continue
		}
		args := strings.Fields(name)
		for _, arg := range commandCases[name].args {
			args = append(args, words.Replace(arg))
		}
		f(name, commandCases[name], args)
	}
}
