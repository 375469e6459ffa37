//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

var storm = flag.Duration("serve.storm", 0, "how long TestServeStorm takes; 0: 15 s, or ten minutes with VARVE_LONG=1")

// record has what the clients know about documents, outside of the store. For each name of a document it has the
// content that was acknowledged last, and the contents of writes whose answers were lost. The content of a deleted
// document is "".
type record struct {
	mu     sync.Mutex
	of     map[string]*recorded
	writes int // acknowledged
}

type recorded struct {
	content string
	maybe   map[string]bool
}

// begin records that a write is sent.
func (r *record) begin(name, content string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.of[name]
	if d == nil {
		d = &recorded{maybe: map[string]bool{}}
		r.of[name] = d
	}
	d.maybe[content] = true
}

// done records that the write was acknowledged.
func (r *record) done(name, content string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of[name] = &recorded{content: content, maybe: map[string]bool{}}
	r.writes++
}

// compare reports each document whose content is neither the acknowledged one nor that of a write without an answer,
// and each that no client wrote.
func (r *record) compare(t *testing.T, what string, got map[string]string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	wrong := 0
	for name, d := range r.of {
		if have := got[name]; have != d.content && !d.maybe[have] {
			if wrong++; wrong <= 10 {
				t.Errorf("%s: %s is %q, want %q or one of %q", what, name, have, d.content,
					slices.Collect(maps.Keys(d.maybe)))
			}
		}
	}
	for name := range got {
		if r.of[name] == nil {
			t.Errorf("%s: no client wrote %s", what, name)
		}
	}
	t.Logf("%s: %d documents, %d writes acknowledged, %d documents wrong", what, len(r.of), r.writes, wrong)
}

// pause is the pause of a client between two writes.
const pause = 2 * time.Millisecond

// TestServeStorm: clients of the Memory Stores API, of MCP and of the folder write to one store, whose server is killed
// every ten seconds. A record outside of the store has the acknowledged writes; at the end none of them is lost, and
// verify finds no fault.
func TestServeStorm(t *testing.T) {
	proofs.ManyProcesses(t, "a server that is killed")
	t.Parallel()
	length, every := *storm, 10*time.Second
	switch {
	case length == 0 && proofs.Long():
		length = 10 * time.Minute
	case length == 0:
		length, every = 15*time.Second, 2500*time.Millisecond
	}
	dir := t.TempDir()
	store := filepath.Join(dir, "s")
	s := startServing(t, dir)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}, Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	_, o := s.api(t.Context(), client, "GET", "", nil)
	data, _ := o["data"].([]any)
	if len(data) != 1 {
		t.Fatal(o)
	}
	first, _ := data[0].(map[string]any)
	at := fmt.Sprint("/", first["id"])

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	x := &stormy{t, s, ctx, client, at, filepath.Join(store, "notes")}
	notes, memories := &record{of: map[string]*recorded{}}, &record{of: map[string]*recorded{}}
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() { x.api(i, notes) })
		all.Go(func() { x.agent(i, memories) })
	}
	for i := range 2 {
		all.Go(func() { x.folder(i, dir, notes) })
	}
	kills := 0
	for end := time.Now().Add(length); time.Now().Before(end); kills++ {
		time.Sleep(min(every, time.Until(end)))
		s.end(syscall.SIGKILL)
		s.start()
	}
	stop()
	all.Wait()
	t.Logf("%d kills in %v", kills, length)

	// The results of the last edits of files are listed within seconds.
	var got map[string]string
	for end := time.Now().Add(time.Minute); ; {
		got = x.listed(t.Context())
		late := 0
		notes.mu.Lock()
		for name, d := range notes.of {
			if strings.HasPrefix(name, "/folder") && got[name] != d.content {
				late++
			}
		}
		notes.mu.Unlock()
		if late == 0 || time.Now().After(end) {
			break
		}
		time.Sleep(time.Second)
	}
	notes.compare(t, "notes", got)
	files := map[string]string{}
	for path := range got {
		b, err := os.ReadFile(filepath.Join(x.notes, filepath.FromSlash(path)))
		if err != nil {
			t.Error(err)
		}
		files[path] = string(b)
	}
	notes.compare(t, "files", files)
	if code := s.end(syscall.SIGTERM); code != cli.CodeOK {
		t.Errorf("exit status %d after SIGTERM", code)
	}
	out, err := exec.Command(memctlBinary(t), "list", "--store", store, "-o", "jsonl", "--limit", "0").Output()
	if err != nil {
		t.Fatal(err)
	}
	got = map[string]string{}
	for line := range bytes.Lines(out) {
		var m struct{ Content string }
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		key, _, _ := strings.Cut(m.Content, ": ")
		if got[key] != "" {
			t.Errorf("%s has two memories, %q and %q", key, got[key], m.Content)
		}
		got[key] = m.Content
	}
	memories.compare(t, "memories", got)
	if out, err := exec.Command(memctlBinary(t), "verify", "--store", store).CombinedOutput(); err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
}

// stormy has the values that the clients of TestServeStorm share.
type stormy struct {
	t      *testing.T
	s      *webServer
	ctx    context.Context
	client *http.Client
	at     string // path of the store
	notes  string // folder of the notes
}

// rest waits for the next write, and reports whether there is one.
func (x *stormy) rest(d time.Duration) bool {
	select {
	case <-x.ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// api creates, updates and deletes memories of the Memory Stores API.
func (x *stormy) api(i int, r *record) {
	path, id := "", ""
	var hash any
	for n := 0; x.rest(pause); n++ {
		if id == "" {
			path = fmt.Sprintf("/api%d/%d.md", i, n)
		}
		content := fmt.Sprintf("client %d says %d", i, n)
		method, to, in := "POST", x.at+"/memories"+id, map[string]any{"content": content}
		switch {
		case id == "":
			in["path"] = path
		case n%20 == 19:
			method, content, in = "DELETE", "", nil
		case n%2 == 0:
			in["precondition"] = map[string]any{"type": "content_sha256", "content_sha256": hash}
		}
		r.begin(path, content)
		// No request is cancelled, so that only kills leave writes without an answer.
		var status int
		var o map[string]any
		if in == nil {
			status, o = x.s.api(context.WithoutCancel(x.ctx), x.client, method, to, nil)
		} else {
			status, o = x.s.api(context.WithoutCancel(x.ctx), x.client, method, to, in)
		}
		switch {
		case status == 200:
			r.done(path, content)
			if id, hash = fmt.Sprint("/", o["id"]), o["content_sha256"]; content == "" || n%40 == 0 {
				id = ""
			}
		case status == 0 || status == http.StatusServiceUnavailable:
			id = "" // the content is one of two: this client no longer writes to the document
			x.rest(20 * time.Millisecond)
		default:
			x.t.Errorf("%s %s: %d %v", method, to, status, o)
			id = ""
		}
	}
}

// agent remembers values of keys.
func (x *stormy) agent(i int, r *record) {
	for n := 0; x.rest(pause); n++ {
		key := fmt.Sprintf("key-%d-%d", i, n%200)
		text := key + ": value " + strconv.Itoa(n)
		r.begin(key, text)
		answer, err := x.s.call(context.WithoutCancel(x.ctx), x.client, "remember",
			map[string]any{"text": text, "key": key})
		switch {
		case err == nil:
			r.done(key, text)
		case answer != "" && !strings.Contains(err.Error(), "503"):
			x.t.Errorf("remember: %v %s", err, answer)
		default:
			x.rest(20 * time.Millisecond)
		}
	}
}

// folder writes files, in one of the ways in which editors do.
func (x *stormy) folder(i int, outside string, r *record) {
	dir := filepath.Join(x.notes, fmt.Sprint("folder", i))
	for n := 0; x.rest(50 * time.Millisecond); n++ {
		file := fmt.Sprint(n%500, ".md") // each is written again after a while
		name, content := fmt.Sprintf("/folder%d/%s", i, file), fmt.Sprintf("file %d of %d", n, i)
		r.begin(name, content)
		to := filepath.Join(dir, file)
		err := os.MkdirAll(dir, 0o700)
		if err == nil && n%2 == 0 {
			err = os.WriteFile(to, []byte(content), 0o600)
		} else if err == nil {
			from := filepath.Join(outside, fmt.Sprint("new", i))
			if err = os.WriteFile(from, []byte(content), 0o600); err == nil {
				err = os.Rename(from, to)
			}
		}
		if err != nil {
			x.t.Error(err)
			continue
		}
		r.done(name, content)
	}
}

// listed returns the contents of all memories of the API by their paths.
func (x *stormy) listed(ctx context.Context) map[string]string {
	all := map[string]string{}
	for at := ""; ; {
		status, o := x.s.api(ctx, x.client, "GET", x.at+"/memories?view=full"+at, nil)
		data, _ := o["data"].([]any)
		if status != 200 {
			x.t.Fatal(status, o)
		}
		for _, item := range data {
			m, _ := item.(map[string]any)
			all[fmt.Sprint(m["path"])] = fmt.Sprint(m["content"])
		}
		if o["next_page"] == nil {
			return all
		}
		at = fmt.Sprint("&page=", o["next_page"])
	}
}
