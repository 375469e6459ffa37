package edits

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/adopt"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/repair"
)

// invalid has files of a memory that cannot be adopted, by how they were made; %s is the file as it was.
var invalid = map[string]string{
	"marks of a merge": "<<<<<<< HEAD\n%s=======\n{}\n>>>>>>> other\n",
	"marks in it":      "{\n<<<<<<< HEAD\n\"id\": \"k0\",\n=======\n\"id\": \"k0\",\n>>>>>>> other\n\"content\": \"x\"}",
	"half saved":       `{"id": "k0", "content": "wa`,
	"another id":       `{"id": "zzz", "content": "mine"}`,
	"no id of a text":  `{"id": 7, "content": "mine"}`,
	"not UTF-8":        "{\"id\": \"k0\", \"content\": \"caf\xe9\"}",
	"UTF-16":           "\xff\xfe{\x00\"\x00i\x00d\x00",
	"mark of order":    "\xef\xbb\xbf{\"id\": \"k0\", \"content\": \"mine\"}",
	"a list":           `[{"id": "k0", "content": "mine"}]`,
	"null":             "null",
	"a member twice":   `{"id": "k0", "content": "mine", "content": "mine too"}`,
	"more behind it":   `{"id": "k0", "content": "mine"} {"id": "k0"}`,
	"a comma too much": `{"id": "k0", "content": "mine",}`,
	"zeros":            strings.Repeat("\x00", 300),
	"another type":     `{"id": "k0", "content": ["mine"]}`,
	"deep": `{"id": "k0", "content": "mine", "x": ` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) +
		"}",
}

// A file that cannot be adopted stays where it is and is reported once, by the process that meets it;
// the memory is served as before; verify says where the file is and what to do. A newer version replaces
// it, and so does repair, with the text kept in quarantine; corrected, it is adopted.
func TestInvalidEdit(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for name, text := range invalid {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, then := range []string{"put", "deleted", "repair", "corrected"} {
				t.Run(then, func(t *testing.T) { invalidEdit(t, text, then) })
			}
		})
	}
}

func invalidEdit(t *testing.T, text, then string) {
	var told []varve.Event
	e := fixture.NewEditing(t, 3, &varve.Options{CacheBytes: -1, Listener: func(ev varve.Event) {
		if ev.Kind == varve.EventDrift || ev.Kind == varve.EventEdit || ev.Kind == varve.EventAdopted ||
			ev.Kind == varve.EventCorruption {
			told = append(told, ev)
		}
	}})
	was := e.Text("k0")
	if strings.Contains(text, "%s") {
		text = fmt.Sprintf(text, was)
	}
	e.Save("k0", text)
	for range 3 {
		e.Look(keys(3)...)
		e.Want("k0", "was 0")
	}
	if len(told) != 1 || told[0].Kind != varve.EventDrift || told[0].Path != "memories/k0.json" || told[0].Err == nil {
		t.Errorf("told: %+v", told)
	}
	e.Flush() // has nothing to do with it
	if e.Text("k0") != text {
		t.Error("the file was touched")
	}
	found := 0
	for f, err := range e.St.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Path == "memories/k0.json" {
			found++
			if f.Severity != varve.SeverityHealable || f.Heals != repair.ByLog || f.Next == "" || f.Err == nil ||
				!strings.Contains(f.Stake, "correct the file") || !strings.Contains(f.Stake, "quarantine/") {
				t.Errorf("%+v", f)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d findings", found)
	}
	kept := 1
	switch then {
	case "put":
		if _, err := e.St.Put(t.Context(), varve.Memory{ID: "k0", Content: "newer"}); err != nil {
			t.Fatal(err)
		}
		e.Want("k0", "newer")
		e.Flush()
		e.Want("k0", "newer")
		if !strings.Contains(e.Text("k0"), "newer") {
			t.Error("the newer version is not in its file")
		}
	case "deleted":
		if err := e.St.Delete(t.Context(), "k0"); err != nil {
			t.Fatal(err)
		}
		e.Flush()
		if _, err := os.Stat(e.Path("k0")); err == nil {
			t.Error("the file is still there")
		}
	case "repair":
		plan, err := varve.PlanRepair(t.Context(), e.Dir, nil, varve.VerifyOptions{})
		if err == nil {
			_, err = plan.Apply(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		e.Want("k0", "was 0")
		if e.Text("k0") != was {
			t.Error("the memory is not in its file")
		}
	case "corrected":
		e.Save("k0", strings.Replace(was, "was 0", "corrected", 1))
		e.Look(keys(3)...)
		e.Want("k0", "corrected")
		e.Flush()
		kept = 0
	}
	q := e.Quarantined()
	if then == "repair" { // the file that it replaced is there too
		if all := strings.Join(q, ""); !strings.Contains(all, text) {
			t.Errorf("in quarantine: %.500q", q)
		}
	} else if len(q) != kept || kept == 1 && q[0] != text {
		t.Errorf("in quarantine: %.500q", q)
	}
	notes, err := filepath.Glob(filepath.Join(e.Dir, "quarantine", "*-k0.json.note.json"))
	if err != nil || len(notes) != kept {
		t.Errorf("notes: %q, %v", notes, err)
	}
	for f, err := range e.St.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		if err != nil || f.Severity > varve.SeverityInfo {
			t.Errorf("afterwards: %+v, %v", f, err)
		}
	}
}

// Files that editors leave beside a memory, and valid files that look unusual.
func TestEditorsLeave(t *testing.T) {
	t.Parallel()
	var told []varve.Event
	e := fixture.NewEditing(t, 4, &varve.Options{Listener: func(ev varve.Event) {
		if ev.Kind == varve.EventDrift || ev.Kind == varve.EventEdit || ev.Kind == varve.EventCorruption {
			told = append(told, ev)
		}
	}})
	e.Save("k1", strings.ReplaceAll(strings.Replace(e.Text("k1"), "was", "lines of Windows", 1), "\n", "\r\n"))
	e.Save("k2", "\n\t "+strings.Replace(e.Text("k2"), "was", "space around", 1)+"\n\n")
	folder := filepath.Join(e.Dir, "memories")
	leave := []string{"4913", ".k0.json.swp", ".k0.json.swo", ".k0.json.un~", "k0.json~", "#k0.json#", ".#k0.json",
		"k0.json.tmp.4711", "k0.json.orig", "k0.json.rej", "k0.json___jb_tmp___", ".DS_Store", ".goutputstream-X7"}
	for _, name := range leave {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("{half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, n := range names {
		all = append(all, n.Name())
	}
	if _, err := adopt.NewFiles(storetest.Inner(e.St).Adopter).Look(t.Context(), "memories", all); err != nil {
		t.Fatal(err)
	}
	e.Want("k1", "lines of Windows 1")
	e.Want("k2", "space around 2")
	e.Flush()
	if len(told) > 0 || len(e.Quarantined()) > 0 {
		t.Errorf("told: %+v; in quarantine: %q", told, e.Quarantined())
	}
	if text := e.Text("k1"); !strings.Contains(text, "\r\n") {
		t.Errorf("its bytes were changed: %q", text)
	}
	for _, name := range leave {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
	for f, err := range e.St.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		if err != nil || f.Severity > varve.SeverityInfo || f.Kind == repair.Foreign && f.Next != "" {
			t.Errorf("%+v, %v", f, err)
		}
	}
}

// A copy with the id of another memory, and a name that differs only in case: both are reported, with
// what to do; neither is treated as the memory, and repair keeps it.
func TestOneIDTwice(t *testing.T) {
	t.Parallel()
	var told []varve.Event
	e := fixture.NewEditing(t, 3, &varve.Options{Listener: func(ev varve.Event) {
		if ev.Kind == varve.EventDrift {
			told = append(told, ev)
		}
	}})
	copied := strings.Replace(e.Text("k0"), "was", "a copy of", 1)
	for _, name := range []string{"k0 (copy)", "K0", "k00"} {
		if _, err := os.Stat(e.Path(name)); err == nil {
			t.Skip("the names are of one file here") // macOS, Windows
		}
		e.Save(name, copied)
	}
	for range 2 {
		e.Look("k0", "k0 (copy)", "K0", "k00")
	}
	e.Want("k0", "was 0")
	if len(told) != 3 {
		t.Errorf("told: %+v", told)
	}
	for _, ev := range told {
		if !strings.Contains(fmt.Sprint(ev.Err), "rename the file or change the id") {
			t.Errorf("%v", ev.Err)
		}
	}
	if n, err := e.St.Count(t.Context()); err != nil || n != 3 {
		t.Errorf("%d memories, %v", n, err)
	}
	plan, err := varve.PlanRepair(t.Context(), e.Dir, nil, varve.VerifyOptions{})
	if err == nil {
		_, err = plan.Apply(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	e.Want("k0", "was 0")
	n := 0
	for _, text := range e.Quarantined() {
		if text == copied {
			n++
		}
	}
	if n == 0 {
		t.Errorf("in quarantine: %q", e.Quarantined())
	}
}

// Something that is not a regular file, or cannot be a memory's, is moved away; nothing of it is lost,
// and nothing behind a link is touched.
func TestNoFileInPlace(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(t *testing.T, path, outside string){
		"folder": func(t *testing.T, path, _ string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(path, "inside"), []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"link": func(t *testing.T, path, outside string) {
			if err := os.Symlink(outside, path); err != nil {
				t.Skip(err)
			}
		},
		"too big": func(t *testing.T, path, _ string) {
			if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, places.StoredMost+1); err != nil {
				t.Fatal(err)
			}
		},
		"empty": func(t *testing.T, path, _ string) {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, then := range []string{"read", "put"} {
			t.Run(name+"/"+then, func(t *testing.T) {
				t.Parallel()
				e := fixture.NewEditing(t, 3, &varve.Options{CacheBytes: -1})
				outside := filepath.Join(t.TempDir(), "outside.json")
				if err := os.WriteFile(outside, []byte(`{"id":"k0","content":"outside"}`), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(e.Path("k0")); err != nil {
					t.Fatal(err)
				}
				put(t, e.Path("k0"), outside)
				e.Look(keys(3)...)
				content := "was 0"
				if then == "put" {
					content = "newer"
					if _, err := e.St.Put(t.Context(), varve.Memory{ID: "k0", Content: content}); err != nil {
						t.Fatal(err)
					}
				}
				e.Want("k0", content)
				e.Flush()
				e.Want("k0", content)
				if text := e.Text("k0"); !strings.Contains(text, content) {
					t.Errorf("its file: %.100q", text)
				}
				if b, err := os.ReadFile(outside); err != nil || !strings.Contains(string(b), "outside") {
					t.Errorf("behind the link: %q, %v", b, err)
				}
				aside, err := filepath.Glob(filepath.Join(e.Dir, "quarantine", "*k0.json"))
				if want := 1; err != nil || name != "empty" && len(aside) != want {
					t.Fatalf("in quarantine: %q, %v", aside, err)
				}
				if name == "empty" {
					return
				}
				if _, err := os.Stat(aside[0] + ".note.json"); err != nil {
					t.Errorf("without a note: %v", err)
				}
				if name == "folder" {
					if b, err := os.ReadFile(filepath.Join(aside[0], "inside")); err != nil || string(b) != "mine" {
						t.Errorf("%q, %v", b, err)
					}
				}
			})
		}
	}
}

// A file that this process may not read is left alone and reported once; the memory is served
// nevertheless, and the file is adopted when it may be read.
func TestUnreadableEdit(t *testing.T) {
	t.Parallel()
	var barred atomic.Bool // the log's own goroutine calls it as well
	hook := func(op *wrap.Op, call func() error) error {
		if barred.Load() && op.Kind == wrap.Open && filepath.Base(op.Path) == "k0.json" {
			return &fs.PathError{Op: "open", Path: op.Path, Err: syscall.EACCES}
		}
		return call()
	}
	var told []varve.Event
	e := fixture.NewEditing(t, 3, storetest.In(&varve.Options{CacheBytes: -1, Listener: func(ev varve.Event) {
		if ev.Kind == varve.EventDrift {
			told = append(told, ev)
		}
	}}, storetest.Environment{System: vfs.System{FS: wrap.New(vfs.OS(), hook)}}))
	text := e.Edit("k0", "was", "is")
	if err := os.Chtimes(e.Path("k0"), time.Time{}, time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	barred.Store(true)
	for range 2 {
		e.Look(keys(3)...)
		e.Want("k0", "was 0")
	}
	if len(told) != 1 || !vfs.IsPermission(told[0].Err) {
		t.Errorf("told: %+v", told)
	}
	e.Flush()
	if e.Text("k0") != text || len(e.Quarantined()) > 0 {
		t.Errorf("touched: %s; in quarantine: %q", e.Text("k0"), e.Quarantined())
	}
	barred.Store(false)
	e.Look(keys(3)...)
	e.Want("k0", "is 0")
}
