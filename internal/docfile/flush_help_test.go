package docfile

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// hookFS calls on before each operation; an error that on returns replaces the operation.
type hookFS struct {
	vfs.FS
	barriers bool // are real ones
	on       func(op, name string) error
}

func (h *hookFS) HasACL(name string) bool { return vfs.HasACL(h.FS, name) }

func (h *hookFS) ask(op, name string) error {
	if h.on == nil {
		return nil
	}
	return h.on(op, name)
}

func (h *hookFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if err := h.ask("open", name); err != nil {
		return nil, err
	}
	f, err := h.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &hookFile{f, h, name}, nil
}

func (h *hookFS) Exchange(a, b string) error {
	if err := h.ask("exchange", b); err != nil {
		return err
	}
	err := h.FS.Exchange(a, b)
	if err == nil {
		err = h.ask("exchanged", b)
	}
	return err
}

func (h *hookFS) RenameNew(a, b string) error {
	if err := h.ask("renamenew", b); err != nil {
		return err
	}
	return h.FS.RenameNew(a, b)
}

func (h *hookFS) Link(a, b string) error {
	if err := h.ask("link", b); err != nil {
		return err
	}
	return h.FS.Link(a, b)
}

func (h *hookFS) Remove(a string) error {
	if err := h.ask("remove", a); err != nil {
		return err
	}
	return h.FS.Remove(a)
}

func (h *hookFS) SyncDir(a string) error {
	if err := h.ask("syncdir", a); err != nil {
		return err
	}
	return h.FS.SyncDir(a)
}

func (h *hookFS) OpenBarrier(a string) (vfs.Barrier, error) {
	if err := h.ask("openbarrier", a); err != nil {
		return nil, err
	}
	if !h.barriers { // a syncfs waits for the data of all processes
		return hookBarrier{nil, h, a}, nil
	}
	b, err := h.FS.OpenBarrier(a)
	return hookBarrier{b, h, a}, err
}

func (h *hookFS) OpenDir(a string) (vfs.Dir, error) {
	if err := h.ask("opendir", a); err != nil {
		return nil, err
	}
	d, err := vfs.OpenDir(h.FS, a)
	if err != nil {
		return nil, err
	}
	return hookDir{d, h, a}, nil
}

type hookDir struct {
	vfs.Dir
	h    *hookFS
	name string
}

func (d hookDir) CreateUnnamed(perm fs.FileMode) (vfs.File, error) {
	if err := d.h.ask("createunnamed", d.name); err != nil {
		return nil, err
	}
	f, err := d.Dir.CreateUnnamed(perm)
	if err != nil {
		return nil, err
	}
	return &hookFile{f, d.h, f.Name()}, nil
}

func (d hookDir) LinkUnnamed(f vfs.File, name string) error {
	if err := d.h.ask("linkunnamed", d.name+"/"+name); err != nil {
		return err
	}
	return d.Dir.LinkUnnamed(f.(*hookFile).File, name)
}

type hookBarrier struct {
	vfs.Barrier
	h    *hookFS
	name string
}

func (b hookBarrier) Sync() error {
	if err := b.h.ask("barrier", b.name); err != nil || b.Barrier == nil {
		return err
	}
	return b.Barrier.Sync()
}

func (b hookBarrier) Close() error {
	if b.Barrier == nil {
		return nil
	}
	return b.Barrier.Close()
}

func (h *hookFS) Rename(a, b string) error {
	if err := h.ask("rename", b); err != nil {
		return err
	}
	return h.FS.Rename(a, b)
}

func (h *hookFS) Mkdir(a string, perm fs.FileMode) error {
	if err := h.ask("mkdir", a); err != nil {
		return err
	}
	return h.FS.Mkdir(a, perm)
}

func (f *hookFile) Truncate(n int64) error {
	if err := f.h.ask("truncate", f.name); err != nil {
		return err
	}
	return f.File.Truncate(n)
}

func (f *hookFile) SetMtime(t time.Time) error {
	if err := f.h.ask("mtime", f.name); err != nil {
		return err
	}
	return f.File.SetMtime(t)
}

type hookFile struct {
	vfs.File
	h    *hookFS
	name string
}

func (f *hookFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.h.ask("write", f.name); err != nil {
		n, _ := f.File.WriteAt(p[:len(p)/2], off) // half of it, as on a full disk
		return n, err
	}
	return f.File.WriteAt(p, off)
}

func (f *hookFile) Sync() error {
	if err := f.h.ask("sync", f.name); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *hookFile) Datasync() error {
	if err := f.h.ask("datasync", f.name); err != nil {
		return err
	}
	return f.File.Datasync()
}

func (f *hookFile) Lease() (bool, error) {
	if err := f.h.ask("lease", f.name); err != nil {
		return false, err
	}
	return f.File.Lease()
}

// bed is a store with one folder, and the expected content of its places.
type bed struct {
	t      testing.TB
	fs     *hookFS
	l      Layout
	folder *Folder
	fl     *Flusher
	now    time.Time
	known  map[string][]string // by name, every version ever put
}

func newBed(t testing.TB, change func(*Options)) *bed {
	t.Helper()
	b := &bed{t: t, fs: &hookFS{FS: vfs.OS()}, now: time.Unix(1790000000, 0), known: map[string][]string{}}
	b.l = Layout{FS: b.fs, Root: t.TempDir()}
	b.folder = b.l.Folder("memories")
	if err := b.folder.Make(); err != nil {
		t.Fatal(err)
	}
	b.fl = b.flusher("tok", change)
	return b
}

func (b *bed) flusher(token string, change func(*Options)) *Flusher {
	o := Options{Layout: b.l, Token: token, Clock: func() time.Time { return b.now }}
	if change != nil {
		change(&o)
	}
	fl, err := NewFlusher(o)
	if err != nil {
		b.t.Fatal(err)
	}
	return fl
}

var base = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)

func (b *bed) mtime(version int) time.Time {
	return base.Add(time.Duration(version) * time.Microsecond)
}

func doc(name string, version int) string {
	return fmt.Sprintf("{\"id\":%q,\"version\":%d,\"pad\":%q}\n", name, version, strings.Repeat("x", (version*37)%200))
}

// change replaces version from (0: absent) with version to (0: delete).
func (b *bed) change(name string, from, to int) Change {
	c := Change{Folder: b.folder, Name: name, ID: "id of " + name, Version: uint64(to), Known: json.RawMessage(`{"session_id":"s1"}`)}
	if from > 0 {
		c.Before = Before{Exists: true, Size: int64(len(doc(name, from))), Mtime: b.mtime(from)}
	}
	if to == 0 {
		c.Delete = true
	} else {
		d := doc(name, to)
		b.known[name] = append(b.known[name], d)
		c.Data = func() ([]byte, error) { return []byte(d), nil }
		c.Mtime = b.mtime(to)
	}
	c.Ours = func(_ vfs.Info, data func() ([]byte, error)) bool {
		d, err := data()
		return err == nil && slices.Contains(b.known[name], string(d))
	}
	return c
}

func (b *bed) round(changes ...Change) Result {
	b.t.Helper()
	r, err := b.fl.Round(context.Background(), changes)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// put runs a round that must not find anything unexpected.
func (b *bed) put(changes ...Change) {
	b.t.Helper()
	if r := b.round(changes...); len(r.Edits)+len(r.Blocked)+len(r.Missing) > 0 {
		b.t.Fatalf("unexpected: %+v", r)
	}
}

func (b *bed) want(name string, version int) {
	b.t.Helper()
	got, info, err := b.folder.Read(name, 1<<20)
	if err != nil || string(got) != doc(name, version) {
		b.t.Fatalf("%s: %q, %v; want version %d", name, got, err, version)
	}
	if !info.Mtime.Equal(b.mtime(version)) {
		b.t.Fatalf("%s: mtime %v, want %v", name, info.Mtime, b.mtime(version))
	}
}

func (b *bed) path(elem ...string) string {
	return filepath.Join(append([]string{b.l.Root}, elem...)...)
}

func (b *bed) write(path, data string) {
	b.t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// files returns the files below a folder, with their bytes.
func (b *bed) files(elem ...string) map[string]string {
	b.t.Helper()
	m := map[string]string{}
	root := b.path(elem...)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) || err == nil && d.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := os.ReadFile(p)
		r, _ := filepath.Rel(root, p)
		m[r] = string(data)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return m
}

// wantSetAside fails the test unless quarantine has exactly these texts, each once, with notes.
func (b *bed) wantSetAside(texts ...string) {
	b.t.Helper()
	all := b.files("quarantine")
	var got []string
	for name, data := range all {
		if strings.HasSuffix(name, noteSuffix) {
			continue
		}
		got = append(got, data)
		var n Note
		if err := json.Unmarshal([]byte(all[name+noteSuffix]), &n); err != nil || n.Why == "" || n.When.IsZero() {
			b.t.Fatalf("note of %s: %q, %v", name, all[name+noteSuffix], err)
		}
		if n.Hash != contentHash([]byte(data)) {
			b.t.Fatalf("note of %s has hash %s", name, n.Hash)
		}
	}
	slices.Sort(got)
	slices.Sort(texts)
	if !slices.Equal(got, texts) {
		b.t.Fatalf("in quarantine:\n%q\nwant:\n%q", got, texts)
	}
}
