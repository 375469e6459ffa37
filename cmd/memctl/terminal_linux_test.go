package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/evil"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/working"
)

// hostileStore is a store in which a stranger wrote every text.
func hostileStore(t *testing.T, dir string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	st, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true})
	must(err)
	for _, id := range []string{evil.Text, "plain"} {
		for range 2 {
			_, err := st.Put(ctx,
				varve.Memory{ID: id, Content: evil.Text + "\n" + evil.Text, Embedding: []float32{1, 2},
					Metadata: map[string]any{evil.Text: evil.Text, "session_id": evil.Text, "key": evil.Text}})
			must(err)
		}
	}
	for _, id := range []string{evil.Text, "group"} {
		_, err = st.Assemblies().Put(ctx,
			varve.Assembly{ID: id, Name: evil.Text, Description: evil.Text, MemoryIDs: []string{evil.Text, "plain"},
				Tags: []string{evil.Text}, Keywords: []string{evil.Text}})
		must(err)
	}
	for _, text := range []string{"first " + evil.Text, evil.Text + "\n" + evil.Text} {
		_, err = st.Notes().Write(ctx, "n/evil.md", []byte(text))
		must(err)
	}
	_, err = st.Notes().SetProperties(ctx, "n/evil.md", varve.NoteProperties{Tags: []string{evil.Text}})
	must(err)
	m, err := st.Working().Open(ctx, working.Scope{Session: evil.Text}, nil)
	must(err)
	must(m.Set(ctx, evil.Text, evil.Text))
	must(m.Set(ctx, "object", map[string]any{evil.Text: evil.Text}))
	_, err = m.SetTask(ctx,
		working.Task{Description: evil.Text, Status: evil.Text, Extra: map[string]any{evil.Text: evil.Text}})
	must(err)
	_, err = m.Append(ctx, evil.Text)
	must(err)
	_, err = m.Checkpoint(ctx, evil.Text)
	must(err)
	must(m.Set(ctx, evil.Text, "other "+evil.Text))
	must(st.Flush(ctx))
	must(st.Close())

	for name, text := range map[string]string{
		"memories/" + evil.Name + ".json":   `{"id":` + quoted(t, "other"+evil.Text) + `}`,
		"memories/" + evil.Name:             "not JSON " + evil.Text,
		"memories/broken.json":              `{"id":"broken","content":` + evil.Text,
		"memories/foreign.json":             `{"id":` + quoted(t, "foreign"+evil.Text) + `,"content":"x"}`,
		"assemblies/" + evil.Name + ".json": `{`,
		"working/" + evil.Name + ".json":    `{`,
		"tmp/" + evil.Name:                  "x",
		"wal/" + evil.Name:                  "x",
		"vector_index/" + evil.Name:         "x",
		"backups/" + evil.Name:              "x",
		"quarantine/" + evil.Name:           "x",
		"quarantine/" + evil.Name + ".note": `{"why":` + quoted(t, evil.Text) + `,"from":` +
			quoted(t, "memories/"+evil.Text) + `,"id":` + quoted(t, evil.Text) + `}`,
		"quarantine/x.note": `{"why":` + quoted(t, evil.Text) +
			`,"from":"memories/x.json","id":"x"}`,
		"quarantine/x":                      "x",
		"quarantine/" + evil.Name + ".json": fmt.Sprintf(`{"id":%s,"content":%[1]s}`, quoted(t, evil.Text)),
		"quarantine/" + evil.Name + ".json.note.json": `{"why":` + quoted(t, evil.Text) + `,"from":` +
			quoted(t, "memories/"+evil.Text) + `,"id":` + quoted(t, evil.Text) + `}`,
		evil.Name: "x",
		"../lines-" + evil.Name + ".jsonl": fmt.Sprintf(`{"id":%q,"content":%s,"embedding":%[2]s}`+"\n{"+evil.Text+"\n",
			"new", quoted(t, evil.Text)),
		"../memory-" + evil.Name + ".json": fmt.Sprintf(`{"id":%s,"content":%[1]s,"embedding":%[1]s}`,
			quoted(t, evil.Text)),
		"../assembly-" + evil.Name + ".json": fmt.Sprintf(`{"assembly_id":%s,"name":%[1]s,"memory_ids":[%[1]s,"x"]}`,
			quoted(t, evil.Text)),
		"../vector-" + evil.Name + ".json": `[` + evil.Text,
	} {
		writeFile(t, filepath.Join(dir, name), text)
	}
}

var evilScope = working.Scope{Session: evil.Text}.Key()

// screenCases are for each command what a person may type in a store that strangers wrote.
// DIR stands for the folder around the store, EVIL for a text of theirs, FILE for the end
// of a file's name.
var screenCases = map[string][][]string{
	"":     {{}},
	"init": {{"DIR/EVIL"}, {"DIR/storage"}},
	"put": {{"EVIL", "--id", "newEVIL"}, {"x", "--id", "EVIL", "--if-absent"},
		{"EVIL", "--append", "EVIL"}, {"--json-input", "DIR/memory-FILE.json"}, {"x", "--embedding", "DIR/vector-FILE.json"},
		{"--file", "DIR/EVIL"}},
	"get": {{"EVIL", "plain", "noneEVIL"}, {"EVIL", "--content"}, {"broken", "foreignEVIL"}},
	"list": {{}, {"--session", "EVIL"}, {"--limit", "1"}, {"--by", "EVIL"}, {"--since", "EVIL"},
		{"--sort", "-updated", "--color", "always"}, {"--sort", "EVIL"}},
	"search": {{"EVIL"}, {"--mode", "words", "R"}, {"R", "--by", "EVIL"}, {"--like", "EVIL"},
		{"--vector", "DIR/vector-FILE.json"}},
	"edit": {{"EVIL"}, {"plain"}},
	"rm":   {{"EVIL", "noneEVIL"}},
	"purge": {{"EVIL"}, {"EVIL", "--yes"}, {"EVIL", "noneEVIL"}, {"--assembly", "EVIL", "--yes"},
		{"--working", evilScope, "--yes"}},
	"history":            {{"EVIL"}, {"noneEVIL"}},
	"log":                {{}, {"--by", "EVIL"}, {"--id", "EVIL"}, {"--session", "EVIL"}, {"--since", "EVIL"}},
	"undo":               {{"EVIL"}, {"--run", "EVIL", "--yes"}, {"--run", "unknown", "--plan"}, {"--since", "EVIL"}},
	"undelete":           {{"EVIL", "noneEVIL"}, {"--assembly", "EVIL"}},
	"revert":             {{"EVIL", "1"}, {"noneEVIL", "64"}, {"plain", "EVIL"}},
	"diff":               {{"EVIL@1", "plain"}, {"EVIL@64", "EVIL"}, {"noneEVIL@1"}},
	"watch":              {{"--since", "0", "--limit", "3"}, {"--since", "EVIL"}},
	"service":            {{}, {"EVIL"}},
	"service install":    {{"--print"}, {"EVIL"}},
	"service uninstall":  {{}},
	"import":             {{"DIR/lines-FILE.jsonl"}, {"DIR"}, {"DIR/noneEVIL"}},
	"export":             {{}, {"--to", "server-memory"}, {"--file", "DIR/EVIL"}, {"--to", "EVIL"}},
	"backup":             {{"DIR/backupEVIL"}},
	"restore":            {{"DIR/noneEVIL", "DIR/new"}, {"DIR", "DIR/newEVIL"}},
	"migrate":            {{"--to", "DIR/movedEVIL"}, {"--to", "DIR/movedEVIL", "--switch"}},
	"remote":             {{}, {"EVIL"}},
	"remote add":         {{"EVIL"}, {"file://DIR/remoteEVIL"}},
	"remote status":      {{}},
	"remote verify":      {{}, {"--read-data"}},
	"remote snapshots":   {{}},
	"remote take":        {{"EVIL"}, {"file://DIR/noneEVIL"}},
	"remote remove":      {{}},
	"remote follow":      {{"EVIL"}},
	"clone":              {{"EVIL", "DIR/new"}, {"file://DIR/none", "DIR/newEVIL"}},
	"status":             {{}},
	"verify":             {{}},
	"doctor":             {{}},
	"repair":             {{}, {"--apply"}, {"EVIL"}},
	"quarantine":         {{}, {"EVIL"}},
	"quarantine list":    {{}, {"-o", "id"}},
	"quarantine show":    {{"EVIL"}, {"x"}, {"FILE"}, {"FILE", "--raw"}},
	"quarantine restore": {{"EVIL"}, {"FILE"}, {"FILE.json"}},
	"quarantine drop":    {{"EVIL", "FILE", "--yes"}, {"FILE"}, {"--older-than", "EVIL"}},
	"rebuild-index":      {{}},
	"reindex":            {{}, {"--missing"}, {"--cancel"}},
	"flush":              {{}},
	"config":             {{}, {"EVIL"}},
	"config list":        {{}},
	"config get":         {{"EVIL"}, {"at_limit"}},
	"config set":         {{"EVIL", "EVIL"}, {"at_limit", "EVIL"}, {"max_bytes", "EVIL"}},
	"config unset":       {{"EVIL"}, {"at_limit"}},
	"demo":               {{"DIR/demoEVIL"}},
	"mcp":                {{"--tools", "EVIL"}, {}},
	"project":            {{}, {"EVIL"}},
	"project list":       {{}},
	"project join":       {{"EVIL"}, {"EVIL", "DIR/EVIL"}},
	"project move":       {{"EVIL", "DIR/EVIL"}},
	"project merge":      {{"EVIL", "EVIL"}, {"prj-11111111111111111111111111111111", "EVIL"}},
	"ui":                 {{"--addr", "EVIL"}, {"--addr", "192.0.2.1:1"}},
	"serve": {{"--addr", "EVIL"}, {"--tools", "EVIL"}, {"--tokens", "DIR/EVIL", "--addr", "192.0.2.1:1"},
		{"--tls-cert", "DIR/EVIL", "--tls-key", "DIR/EVIL", "--addr", "127.0.0.1:0"}},
	"serve token": {{}, {"EVIL"}},
	"serve token add": {{"EVIL", "--tokens", "DIR/tokens.json"},
		{"x", "--tools", "EVIL", "--tokens", "DIR/tokens.json"}},
	"serve token list":   {{"--tokens", "DIR/tokens.json"}, {"--tokens", "DIR/EVIL"}},
	"serve token remove": {{"EVIL", "--tokens", "DIR/tokens.json"}},
	"manual":             {{"DIR/manEVIL"}, {"DIR/storage/config.json"}},
	"version":            {{}},
	"help":               {{}, {"EVIL"}},
	"sessions list":      {{}},
	"sessions show":      {{"EVIL", "noneEVIL"}},
	"sessions rm":        {{"--yes", "EVIL", "noneEVIL"}},
	"sessions sweep":     {{"--keep", "0"}, {"--keep", "0", "--apply"}, {"--older-than", "EVIL"}},
	"assembly":           {{}},
	"sessions":           {{}},
	"working":            {{}},
	"working checkpoint": {{}},
	"working scratchpad": {{}},
	"assembly list":      {{}, {"--tag", "EVIL"}},
	"assembly show":      {{"EVIL", "noneEVIL"}, {"EVIL", "--members"}},
	"assembly put": {{"plain", "noneEVIL", "--id", "newEVIL"},
		{"plain", "--id", "newEVIL", "--name", "EVIL"}, {"--json-input", "DIR/assembly-FILE.json"}},
	"assembly add":      {{"EVIL", "noneEVIL"}, {"EVIL", "plain"}},
	"assembly remove":   {{"EVIL", "EVIL"}},
	"assembly merge":    {{"EVIL", "group"}, {"EVIL", "noneEVIL"}},
	"assembly activate": {{"EVIL", "noneEVIL"}},
	"assembly rm":       {{"EVIL", "noneEVIL"}},
	"note":              {{}},
	"note ls":           {{}, {"EVIL"}, {"--glob", "EVIL"}, {"--depth", "1", "--color", "always"}},
	"note cat":          {{"EVIL", "n/evil.md", "noneEVIL"}},
	"note write":        {{"EVIL"}, {"n/evil.md", "--if-hash", "EVIL"}},
	"note append":       {{"EVIL"}},
	"note edit":         {{"EVIL", "--old", "x", "--new", "EVIL"}, {"n/evil.md", "--old", "EVIL", "--new", "EVIL"}},
	"note mv":           {{"EVIL", "noneEVIL"}, {"n/evil.md", "EVIL"}},
	"note rm":           {{"EVIL", "noneEVIL"}, {"-r", "EVIL"}},
	"note grep":         {{"EVIL"}, {"."}, {"x", "EVIL"}, {"[EVIL"}},
	"note log":          {{"EVIL"}, {"n/evil.md"}},
	"note diff":         {{"EVIL"}, {"n/evil.md"}, {"n/evil.md", "EVIL"}},
	"note restore":      {{"EVIL"}, {"n/evil.md", "EVIL"}},
	"note import":       {{"DIR"}, {"DIR/noneEVIL"}, {"DIR/storage/quarantine", "--into", "EVIL"}},
	"note export":       {{"DIR/out"}, {"DIR/EVIL"}, {"DIR/out", "--from", "EVIL"}},
	"note adopt":        {{"DIR"}, {"DIR/noneEVIL"}, {"DIR/storage", "--as", "EVIL"}},
	"note release":      {{"DIR"}, {"DIR/noneEVIL"}},
	"working list":      {{}},
	"working stats":     {{"--scope", evilScope}, {}},
	"working drop":      {{"--scope", evilScope}, {"--scope", "EVIL"}},
	"working export":    {{}, {"--scope", evilScope}, {"--file", "DIR/EVIL"}},
	"working get":       {{"EVIL", "object", "noneEVIL", "--scope", evilScope}},
	"working set": {{"newEVIL", "EVIL", "--scope", evilScope},
		{"EVIL", "1", "--if-absent", "--scope", evilScope}},
	"working rm":                 {{"EVIL", "noneEVIL", "--scope", evilScope}},
	"working keys":               {{"--scope", evilScope}},
	"working task":               {{"--scope", evilScope}},
	"working scratchpad list":    {{"--scope", evilScope}},
	"working scratchpad append":  {{"EVIL", "--scope", evilScope}},
	"working scratchpad clear":   {{"--scope", evilScope}},
	"working checkpoint create":  {{"EVIL", "--scope", evilScope}},
	"working checkpoint list":    {{"--scope", evilScope}},
	"working checkpoint show":    {{"CHECKPOINT", "--scope", evilScope}, {"noneEVIL", "--scope", evilScope}},
	"working checkpoint restore": {{"CHECKPOINT", "--scope", evilScope}, {"noneEVIL", "--scope", evilScope}},
	"working checkpoint diff":    {{"CHECKPOINT", "--scope", evilScope}, {"noneEVIL", "--scope", evilScope}},
	"working checkpoint rm":      {{"CHECKPOINT", "--scope", evilScope}, {"noneEVIL", "--scope", evilScope}},
	"completion":                 {{}, {"EVIL"}},
	"completion bash":            {{}},
	"completion fish":            {{}},
	"completion powershell":      {{}},
	"completion zsh":             {{}},
}

// Nothing that a stranger wrote makes a terminal do anything: no command sends it a
// control that is not its own, with and without --json.
func TestTerminalObeysNobodyElse(t *testing.T) {
	proofs.ManyProcesses(t, "every command is a process")
	t.Parallel()
	everyCommand(t, screenCases, "screenCases (terminal_linux_test.go)")
	template := t.TempDir()
	memctl, err := exec.LookPath("memctl") // demo starts itself by its name
	if err != nil {
		t.Fatal(err)
	}
	hostileStore(t, filepath.Join(template, "storage"))
	checkpoint := oneCheckpoint(t, memctl, filepath.Join(template, "storage"))
	for name, cases := range screenCases {
		t.Run("memctl "+name, func(t *testing.T) {
			t.Parallel()
			for _, args := range cases {
				for _, more := range [][]string{nil, {"--json"}} {
					dir := t.TempDir()
					if out, err := exec.Command("cp", "-a", template+"/.", dir).CombinedOutput(); err != nil {
						t.Fatalf("%v: %s", err, out)
					}
					words := strings.NewReplacer("DIR", dir, "EVIL", evil.Text, "FILE", evil.Name, "CHECKPOINT", checkpoint)
					all := strings.Fields(name)
					for _, arg := range args {
						all = append(all, words.Replace(arg))
					}
					cmd := exec.Command(memctl, append(all, more...)...)
					cmd.Dir = dir
					cmd.Env = append(os.Environ(), "VARVE_STORE="+filepath.Join(dir, "storage"), "EDITOR=sed -i s/content/contents/",
						"VISUAL=", "TERM=xterm", "NO_COLOR=")
					sent := onTerminal(t, cmd, "{"+strings.ReplaceAll(evil.Text, "\r", "")+"\nn\n\x04\x04")
					if what := evil.Obeyed(sent); what != "" {
						t.Errorf("memctl %+q sends the terminal %s", append(all, more...), what)
					}
				}
			}
		})
	}
}

// oneCheckpoint is the id of a checkpoint in the working memory of evilScope.
func oneCheckpoint(t *testing.T, memctl, store string) string {
	t.Helper()
	out, err := exec.Command(memctl, "--store", store, "working", "checkpoint", "list", "--scope", evilScope,
		"--json").Output()
	var d struct{ Checkpoints []struct{ ID string } }
	if jerr := json.Unmarshal(out, &d); err != nil || jerr != nil || len(d.Checkpoints) == 0 {
		t.Fatalf("%s, %v, %v", out, err, jerr)
	}
	return d.Checkpoints[0].ID
}

// Every command has its cases, where the tests that run them skip as well.
func TestTables(t *testing.T) {
	t.Parallel()
	everyCommand(t, screenCases, "screenCases (terminal_linux_test.go)")
	everyCommand(t, commandCases, "commandCases (command_cases_test.go)")
}
