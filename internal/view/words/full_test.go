package words_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// fullDisk is a store whose view cannot be written from a call on.
type fullDisk struct {
	dir string
	o   *varve.Options

	mu     sync.Mutex
	calls  []call // that write for the view, or for the index
	from   int    // the number of the first call that fails; -1: none does
	once   bool   // and the only one
	err    func(op *wrap.Op) error
	clock  time.Time
	events []varve.Event
}

// call is one that writes.
type call struct {
	kind wrap.Kind
	name string
	view bool // for the view
}

func newFullDisk(dir string) *fullDisk {
	d := &fullDisk{dir: dir, from: -1, clock: time.Now()}
	d.o = storetest.In(&varve.Options{
		NoBackground: true,
		Clock: func() time.Time {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.clock
		},
		Listener: func(e varve.Event) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if e.Kind == varve.EventViewError {
				d.events = append(d.events, e)
			}
		},
	}, storetest.Environment{System: vfs.System{WordsRows: 50, FS: fault.New(vfs.OS(), d.rule)}})
	return d
}

// rule fails what needs room, or says only then that there is none.
func (d *fullDisk) rule(op *wrap.Op) error {
	inView := strings.HasPrefix(op.Path, filepath.Join(d.dir, folder)) ||
		strings.HasPrefix(op.Path, filepath.Join(d.dir, "tmp", "index."))
	switch op.Kind {
	case wrap.Create, wrap.Mkdir, wrap.Write, wrap.Rename, wrap.Sync, wrap.SyncDir, wrap.Truncate:
	default:
		return nil
	}
	if !inView {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.calls)
	d.calls = append(d.calls, call{op.Kind, filepath.Base(op.Path), strings.Contains(op.Path+op.To, folder)})
	if d.calls[n].view && op.Kind == wrap.Rename { // the file was written for it
		for i := n - 1; i >= 0 && d.calls[i].name == d.calls[n].name; i-- {
			if d.calls[i].kind == wrap.Rename {
				break
			}
			d.calls[i].view = true
		}
	}
	if d.from < 0 || n < d.from || d.once && n > d.from {
		return nil
	}
	return d.err(op)
}

// set has calls fail from the n-th on; -1: none.
func (d *fullDisk) set(n int, once bool, err func(op *wrap.Op) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls, d.from, d.once, d.err = nil, n, once, err
}

// told are the events since the last call.
func (d *fullDisk) told() []varve.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.events
	d.events = nil
	return list
}

func (d *fullDisk) later() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clock = d.clock.Add(2 * time.Minute)
}

// strays are files of the view that its manifest does not name, and what is left in tmp/.
func strays(t *testing.T, dir string) (list []string) {
	t.Helper()
	keep := map[string]bool{"manifest.json": true}
	b, err := os.ReadFile(filepath.Join(dir, folder, "manifest.json"))
	if err == nil {
		var m struct {
			Segments []struct {
				Number uint64 `json:"number"`
				State  string `json:"state"`
			} `json:"segments"`
		}
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		for _, s := range m.Segments {
			keep[fmt.Sprintf("%016x.seg", s.Number)], keep[s.State] = true, true
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, at := range []string{folder, "tmp"} {
		names, err := os.ReadDir(filepath.Join(dir, at))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for _, f := range names {
			if at == folder && !keep[f.Name()] || strings.HasPrefix(f.Name(), "index.") {
				list = append(list, f.Name())
			}
		}
	}
	return list
}

// TestFullDisk: each call that writes for the view fails in turn, because the disk is full, because a
// quota is used up, in the middle of a write, and at a sync, alone or with all that follow. Nothing that
// was put is lost, what is put and asked meanwhile is answered, it is told once, no file is left over,
// and when there is room again the next round makes the same as if nothing had happened.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	set := func(change func(c *varve.Config)) func(*testing.T, *varve.Store) error {
		return func(t *testing.T, st *varve.Store) error {
			if err := st.Admin().UpdateConfig(t.Context(), func(c *varve.Config) error { change(c); return nil }); err != nil {
				t.Fatal(err)
			}
			return st.Flush(t.Context())
		}
	}
	putTen := func(t *testing.T, st *varve.Store) error {
		put(t, st, 90, 110)
		if err := st.Delete(t.Context(), "m0003"); err != nil {
			t.Fatal(err)
		}
		return st.Flush(t.Context())
	}
	for name, c := range map[string]struct {
		make  func(t *testing.T, dir string)
		work  func(t *testing.T, st *varve.Store) error
		files int // segments that there are in the end
		least int // calls that write
	}{
		"flush": {func(t *testing.T, dir string) {
			st := open(t, dir)
			put(t, st, 0, 100)
			flush(t, st)
		}, putTen, 2, 15},
		"merge": {func(t *testing.T, dir string) {
			st := open(t, dir)
			for i := range 7 {
				put(t, st, 13*i, 13*(i+1))
				flush(t, st)
			}
		}, putTen, 1, 9},
		"rebuild": {func(t *testing.T, dir string) {
			st := open(t, dir)
			put(t, st, 0, 130)
			flush(t, st)
			if err := errors.Join(st.Close(), os.RemoveAll(filepath.Join(dir, folder))); err != nil {
				t.Fatal(err)
			}
		}, func(t *testing.T, st *varve.Store) error { return st.Flush(t.Context()) }, 3, 20},
		"language": {func(t *testing.T, dir string) {
			st := open(t, dir)
			put(t, st, 0, 130)
			flush(t, st)
		}, set(func(c *varve.Config) { c.TextLanguage = "de" }), 3, 20},
		"fields": {func(t *testing.T, dir string) {
			st := open(t, dir)
			put(t, st, 0, 130)
			flush(t, st)
		}, set(func(c *varve.Config) {
			c.Text = &varve.TextConfig{Fields: map[string][]string{"tag": {"speaker"}, "speaker": {"tags"}}}
		}), 3, 20},
		"purge": {func(t *testing.T, dir string) {
			st := open(t, dir)
			put(t, st, 0, 130)
			flush(t, st)
		}, func(t *testing.T, st *varve.Store) error {
			_, err := st.Admin().Purge(t.Context(), "m0017")
			return err
		}, 1, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			c.make(t, base)
			start := func() (*fullDisk, *varve.Store) {
				dir := filepath.Join(t.TempDir(), "s")
				if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
					t.Fatal(err)
				}
				d := newFullDisk(dir)
				st, err := varve.Open(t.Context(), dir, d.o)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = st.Close() })
				return d, st
			}
			more := func(st *varve.Store) {
				t.Helper()
				if _, err := st.Put(t.Context(),
					varve.Memory{ID: "later", Content: "a kangaroo", Timestamp: time.Unix(7, 0)}); err != nil {
					t.Fatal(err)
				}
				if m, err := st.Get(t.Context(), "m0050"); err != nil || m.ID != "m0050" {
					t.Fatal(m, err)
				}
				hits, err := st.Search(t.Context(), varve.Query{Text: "kangaroo"})
				if err != nil || len(hits) != 1 || hits[0].ID != "later" {
					t.Fatal(hits, err)
				}
			}
			d, st := start()
			before := answers(t, st)
			d.set(-1, false, nil)
			if err := c.work(t, st); err != nil {
				t.Fatal(err)
			}
			calls, write := slices.Clone(d.calls), 0
			for _, c := range calls {
				if c.view {
					write++
				}
			}
			if write < c.least {
				t.Fatalf("%d calls write", write)
			}
			between := answers(t, st)
			segments, err := filepath.Glob(filepath.Join(d.dir, folder, "*.seg"))
			if err != nil || len(segments) != c.files {
				t.Fatal(segments, err)
			}
			more(st)
			flush(t, st)
			want := answers(t, st)
			failed, tried, n := 0, 0, 0
			for i, op := range calls {
				if !op.view {
					continue
				}
				errs := []func(*wrap.Op) error{
					func(*wrap.Op) error { return syscall.ENOSPC },
					func(*wrap.Op) error { return syscall.EDQUOT },
				}
				switch op.kind {
				case wrap.Write:
					errs = append(errs, func(op *wrap.Op) error {
						if op.Kind == wrap.Write {
							return fault.Short(op.Size/2, syscall.ENOSPC)
						}
						return syscall.ENOSPC
					})
				case wrap.Sync, wrap.SyncDir:
					errs = append(errs, func(*wrap.Op) error { return syscall.EIO })
				}
				for j, fails := range errs {
					once := (i+j)%2 == 1
					if n++; n%proofs.Every(3) != 0 {
						continue
					}
					failed++
					what := fmt.Sprintf("call %d (%s %s), error %d, once %v", i, op.kind, op.name, j, once)
					d, st := start()
					if got := answers(t, st); got != before {
						t.Fatalf("%s: before:\n%s\nwant\n%s", what, got, before)
					}
					d.set(i, once, fails)
					err := c.work(t, st)
					full := j != 2 || op.kind == wrap.Write
					if full && err != nil && !errors.Is(err, varve.ErrDiskFull) {
						t.Errorf("%s: %v", what, err)
					}
					told := d.told()
					h := st.Health(t.Context())
					mended := name == "purge" && once && h.OK // it tries again without the files of before
					if err == nil && len(told) != 1 && !(mended && len(told) == 0) {
						t.Errorf("%s: told %d times: %v", what, len(told), told)
					}
					for _, e := range told {
						if !strings.HasPrefix(e.Path, "view_index") || full && !errors.Is(e.Err, varve.ErrDiskFull) {
							t.Errorf("%s: %+v", what, e)
						}
					}
					if err == nil && !mended && (h.OK ||
						!slices.ContainsFunc(h.Problems, func(err error) bool { return strings.Contains(err.Error(), "view_index") })) {
						t.Errorf("%s: %+v", what, h)
					}
					if got := answers(t, st); got != before && got != between {
						t.Errorf("%s: meanwhile:\n%s\nwant\n%s", what, got, between)
					}
					// Behind the manifest the round ends early.
					if list := strays(t, d.dir); len(list) > 0 && op.kind != wrap.SyncDir {
						t.Errorf("%s: left over: %q", what, list)
					}
					if err == nil && !once { // the next round fails as well, and that was told
						d.later()
						_ = st.Flush(t.Context())
						if again := d.told(); len(again) > 0 {
							t.Errorf("%s: told again: %v", what, again)
						}
						tried++
					}
					more(st)
					d.set(-1, false, nil)
					d.later()
					if err != nil { // what was asked for was not done
						if err := c.work(t, st); err != nil && !errors.Is(err, varve.ErrNotFound) { // a purge says so of what is gone
							t.Errorf("%s: again: %v", what, err)
						}
					}
					flush(t, st)
					if got := answers(t, st); got != want {
						t.Errorf("%s: with room again:\n%s\nwant\n%s", what, got, want)
					}
					if list := strays(t, d.dir); len(list) > 0 {
						t.Errorf("%s: left over in the end: %q", what, list)
					}
					if h := st.Health(t.Context()); !h.OK {
						t.Errorf("%s: %v", what, h.Problems)
					}
					for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
						if err != nil || f.Severity != varve.SeverityInfo { // the copy has other times
							t.Errorf("%s: %+v %v", what, f, err)
						}
					}
					if err := st.Close(); err != nil {
						t.Errorf("%s: %v", what, err)
					}
					if t.Failed() {
						return
					}
				}
			}
			t.Logf("%d calls write, %d failures of them, of which %d were tried again", write, failed, tried)
		})
	}
}
