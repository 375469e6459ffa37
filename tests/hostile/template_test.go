//go:build linux || darwin

package hostile

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// template is a box that all others are copies of.
type template struct {
	box
	want map[string]string // the documents by kind and id
}

// newTemplate makes a store with everything in it, and its surroundings.
func newTemplate(t *testing.T) *template {
	t.Helper()
	tp := &template{box: box{filepath.Join(base, "template")}}
	for _, dir := range []string{subDir, inputDir, outDir, tempDir, stateDir, homeDir + "/.ssh", secretDir + "/1", secretDir + "/parked", otherDir + "/memories", otherDir + "/wal", targetDir} {
		if err := os.MkdirAll(tp.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{
		homeDir + "/.bashrc", homeDir + "/.ssh/id_rsa", secretDir + "/id_rsa", secretDir + "/1/2", secretDir + "/parked/key", secretDir + "/00000001.wal",
		otherDir + "/config.json", otherDir + "/wal/open.lock",
	} {
		tp.write(t, name, secret+" of "+name+"\n")
	}
	other := `{"id":"other","content":"` + secret + `"}`
	tp.write(t, secretDir+"/a.json", other)
	tp.write(t, secretDir+"/mapping.json", other)
	tp.write(t, otherDir+"/memories/other.json", other)
	tp.fill(t)
	tp.inputs(t)
	tp.want = tp.documents(t, storeDir)
	if len(tp.want) < 10 {
		t.Fatalf("the store has only %d documents", len(tp.want))
	}
	return tp
}

func (tp *template) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(tp.path(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// do runs memctl, which must succeed.
func (tp *template) do(t *testing.T, stdin string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(memctl(), args...)
	cmd.Dir, cmd.Env, cmd.Stdin = tp.path(subDir), environ(tp.box), strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("memctl %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out
}

func (tp *template) fill(t *testing.T) {
	t.Helper()
	do := func(args ...string) { t.Helper(); tp.do(t, "", args...) }
	do("init", tp.path(storeDir), "--segment-size", "65536")
	for _, id := range []string{"m0", "m1"} { // the memories that package forgery forges
		do("put", "memory "+id, "--id", id, "--embedding", "[0.5,0.5,"+id[1:]+"]")
	}
	for i, id := range []string{"a", "b", "c", "d", "e", "f"} {
		do("put", "hello from "+id, "--id", id, "--session", fmt.Sprintf("s%d", 1+i%2), "--embedding", fmt.Sprintf("[0.1,0.%d,0.3]", i+1))
	}
	do("put", "hello again", "--id", "a", "--session", "s1")
	do("put", "an id that is no name", "--id", "Straße/../7")
	do("put", "to be deleted", "--id", "gone")
	do("rm", "gone")
	do("assembly", "put", "--id", "rome", "--name", "Rome", "a", "b")
	do("assembly", "put", "--id", "milan", "--name", "Milan", "c")
	do("working", "set", "draft", "to be done", "--scope", "session:s1")
	do("working", "scratchpad", "append", "a thought", "--scope", "session:s1")
	do("working", "checkpoint", "create", "first", "--scope", "session:s1")
	for _, path := range []string{"gone.md", "n.md", "folder/deep.md"} {
		tp.do(t, "the text of a note\n", "note", "write", path)
	}
	do("note", "rm", "gone.md")
	do("config", "set", "flush_threshold", "5")
	random := rand.New(rand.NewPCG(1, 2))
	for range 4 { // enough for segments in the archive
		text := make([]byte, 15000)
		for i := range text {
			text[i] = byte(random.Uint32())
		}
		tp.do(t, base64.StdEncoding.EncodeToString(text), "put", "-", "--id", "big")
	}
	tp.rot(t, "memories/c.json")
	do("repair", "--apply") // leaves notes and a manifest in quarantine/
	do("backup", tp.path(backupDir))
	do("backup", "--packed", tp.path(packedFile))
	do("migrate", "--to", tp.path(begunDir))
	do("verify")
	tp.leave(t)
}

// rot changes a file and keeps its mtime.
func (tp *template) rot(t *testing.T, name string) {
	t.Helper()
	path := tp.path(storeDir, name)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	tp.write(t, storeDir+"/"+name, strings.Repeat("x", int(info.Size())))
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
}

// leave creates the leftovers of killed processes: a displaced file in tmp/parked, one in the folder of
// a worker.
func (tp *template) leave(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(tp.path(storeDir, "memories/b.json"))
	if err != nil {
		t.Fatal(err)
	}
	mtime := time.Now().Add(-time.Hour).Truncate(time.Second)
	parked := fmt.Sprintf("%s/tmp/parked/memories@b.json@%d@%d@%d@0123abcd-1", storeDir, len(text), mtime.UnixNano(), mtime.Unix())
	for _, name := range []string{parked, storeDir + "/tmp/0123abcd/0/1"} {
		if err := os.MkdirAll(filepath.Dir(tp.path(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		tp.write(t, name, string(text))
		if err := os.Chtimes(tp.path(name), mtime, mtime); err != nil {
			t.Fatal(err)
		}
	}
}

func (tp *template) inputs(t *testing.T) {
	t.Helper()
	tp.write(t, inputDir+"/text.txt", "a text to put\n")
	tp.write(t, inputDir+"/vector.json", "[0.1,0.2,0.3]")
	tp.write(t, inputDir+"/memory.json", `{"id":"m","content":"put whole"}`)
	tp.write(t, inputDir+"/source.jsonl", `{"id":"i1","content":"imported"}`+"\n")
	for name, text := range map[string]string{
		"graph.jsonl":                 `{"type":"entity","name":"x","entityType":"t","observations":["o"]}` + "\n",
		"synthians/memories/x.json":   `{"id":"x","content":"of synthians","embedding":[1,2]}`,
		"synthians/memory_index.json": `{"x":{"path":"memories/x.json"}}`,
	} {
		path := tp.path(inputDir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		tp.write(t, inputDir+"/"+name, text)
	}
}

// documents returns the documents of a store, by kind and id.
func (tp *template) documents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all, err := documents(tp.do(t, "", "--store", tp.path(dir), "export"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// documents returns the documents in the lines of an export, without counts and times of accesses and moves.
func documents(lines []byte) (map[string]string, error) {
	all := map[string]string{}
	for line := range bytes.Lines(lines) {
		var d struct {
			ID       string   `json:"id"`
			Content  string   `json:"content"`
			Assembly string   `json:"assembly_id"`
			Name     string   `json:"name"`
			Members  []string `json:"memory_ids"`
		}
		if err := json.Unmarshal(line, &d); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		if d.Assembly != "" {
			all["assembly "+d.Assembly] = d.Name + " " + strings.Join(d.Members, " ")
		} else {
			all["memory "+d.ID] = d.Content
		}
	}
	return all, nil
}
