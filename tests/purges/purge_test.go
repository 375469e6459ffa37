package purges

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/views"
	"github.com/varve-db/varve/tests/letters"
)

// secrets are memories that are going to be purged, and all byte sequences that must not be found
// afterwards.
type secrets struct {
	ids   []string
	parts map[string][]byte // what it is: bytes
}

func (s *secrets) add(what string, b []byte) { s.parts[what] = b }

// text returns a text of n bytes that occurs nowhere else; every 24 bytes identify it.
func (s *secrets) text(r *rand.Rand, what string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	text := base64.StdEncoding.EncodeToString(b)[:n]
	for at := 0; at+24 <= n; at += max(24, n/8) {
		s.add(fmt.Sprintf("%s at %d", what, at), []byte(text[at:at+24]))
	}
	return text
}

// secretive fills a store: secrets in every possible version and place, among other memories, whose
// contents and histories it returns.
func secretive(t testing.TB, st *varve.Store, seed uint64) *secrets {
	t.Helper()
	ctx := context.Background()
	r := rand.New(rand.NewPCG(seed, 1))
	s := &secrets{ids: []string{"forget-me:Ünique", "forgotten-before"}, parts: map[string][]byte{}}
	c := st.Admin().Config()
	always := 0
	c.BackupInterval = &always
	if err := st.Admin().SetConfig(c); err != nil {
		t.Fatal(err)
	}
	for _, id := range s.ids {
		s.add("id "+id, []byte(id))
		s.add("file "+id, []byte(jsondoc.FileName(id)))
	}
	put := func(m varve.Memory) {
		t.Helper()
		if _, err := st.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	hide := func(id string, round, size int) {
		vec := make([]float32, 8)
		var raw []byte
		for i := range vec {
			vec[i] = r.Float32()
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(vec[i]))
		}
		what := fmt.Sprintf("%s in round %d", id, round)
		s.add(what+": vector", raw[:12])
		put(varve.Memory{ID: id, Content: s.text(r, what, size), Embedding: vec,
			Metadata: map[string]any{"session_id": "the-session", "who": s.text(r, what+": metadata", 24)}})
	}
	for round := range 6 {
		for i := range 12 {
			put(varve.Memory{ID: fmt.Sprint("other", (round*5+i)%17), Content: fmt.Sprint(round, strings.Repeat("x", 300*(i%5))),
				Metadata: map[string]any{"session_id": "the-session"}})
			if i == 3 {
				hide(s.ids[0], round, 200+round*1500)
			}
		}
		if round < 2 {
			hide(s.ids[1], round, 6000)
		} else if err := st.Delete(ctx, s.ids[1]); err != nil && !errors.Is(err, varve.ErrNotFound) {
			t.Fatal(err)
		}
		flush := st.Flush
		if round%2 == 0 {
			flush = st.Admin().Compact
		}
		if err := flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	hide(s.ids[0], 6, 5000) // in the log only
	return s
}

// traces lists where parts of the secrets are, in any file, also compressed.
func (s *secrets) traces(t testing.TB, fsys vfs.FS, dir string) (found []string) {
	t.Helper()
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	var look func(where string, b []byte, depth int)
	look = func(where string, b []byte, depth int) {
		for what, part := range s.parts {
			if at := bytes.Index(b, part); at >= 0 {
				found = append(found, fmt.Sprintf("%s at %d: %s", where, at, what))
			}
		}
		magic := []byte{0x28, 0xb5, 0x2f, 0xfd}
		for at := bytes.Index(b, magic); at >= 0 && depth < 3; {
			plain, _ := dec.DecodeAll(b[at:], nil) // an error: what follows is not a frame
			look(fmt.Sprintf("%s, inflated at %d", where, at), plain, depth+1)
			next := bytes.Index(b[at+4:], magic)
			if next < 0 {
				break
			}
			at += 4 + next
		}
	}
	// The store prepares segments during the walk, and renames them: then the walk begins again, so that
	// it misses nothing. gone reports that a name no longer exists.
	gone := func(err error) bool {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err != nil
	}
	var walk func(path string) bool
	walk = func(path string) bool {
		names, err := fsys.ReadDir(path)
		if gone(err) {
			return false
		}
		slices.Sort(names)
		for _, name := range names {
			p := filepath.Join(path, name)
			info, err := fsys.Stat(p)
			if gone(err) {
				return false
			}
			look(p+" (its name)", []byte(name), 9)
			switch {
			case info.Mode.IsDir():
				if !walk(p) {
					return false
				}
			case info.Mode.IsRegular():
				b, err := vfs.ReadFile(fsys, p, 1<<30)
				if gone(err) {
					return false
				}
				look(p, b, 0)
			}
		}
		return true
	}
	for tries := 0; !walk(dir); tries++ {
		if found = nil; tries == 100 {
			t.Fatal("files of the store come and go without end")
		}
	}
	slices.Sort(found)
	return found
}

// pasts returns the versions of all memories except the secrets.
func (s *secrets) pasts(t testing.TB, st *varve.Store) map[string][]uint64 {
	t.Helper()
	all := map[string][]uint64{}
	for m, err := range st.Memories(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(s.ids, m.ID) {
			continue
		}
		for v, err := range st.History(context.Background(), m.ID) {
			if err != nil {
				t.Fatal(m.ID, err)
			}
			all[m.ID] = append(all[m.ID], v.LSN)
		}
	}
	return all
}

func (s *secrets) others(all map[string]varve.Memory) map[string]varve.Memory {
	for _, id := range s.ids {
		delete(all, id)
	}
	return all
}

// After a purge no file of the folder has a byte of the purged memories, in whatever form; the others
// have all their data.
func TestPurge(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	seed := proofs.Seed(t, 0)
	st := fixture.Open(t, dir, fixture.SmallLog)
	beside := fixture.Open(t, dir, fixture.SmallLog)
	s := secretive(t, st, seed)
	// Segments are recycled: frames of older ones are behind the ends of newer ones.
	for i := range 40 {
		m := varve.Memory{ID: s.ids[1], Content: s.text(rand.New(rand.NewPCG(seed, uint64(100+i))),
			fmt.Sprint("going round ", i), 2500)}
		if i > 25 {
			m = varve.Memory{ID: "other1", Content: strings.Repeat("z", 3000)}
		}
		if _, err := st.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
		if i%3 == 2 {
			if _, err := st.Put(ctx,
				varve.Memory{ID: "incompressible", Content: (&secrets{parts: map[string][]byte{}}).text(rand.New(rand.NewPCG(seed,
					uint64(1000+i))), "", 20000)}); err != nil {
				t.Fatal(err)
			}
			if err := st.Admin().Compact(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := st.Delete(ctx, s.ids[1]); err != nil {
		t.Fatal(err)
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	// An invalid edit goes to quarantine when the memory is written again; so does a file in the place
	// of a deleted memory.
	path := filepath.Join(dir, "memories", jsondoc.FileName(s.ids[0]))
	spoil := func() {
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, b[:len(b)*2/3], 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	spoil()
	if _, err := st.Put(ctx,
		varve.Memory{ID: s.ids[0], Content: s.text(rand.New(rand.NewPCG(seed, 2)), "written over an edit",
			3000)}); err != nil {
		t.Fatal(err)
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	spoil()
	plan, err := varve.PlanRepair(ctx, dir, fixture.SmallLog, varve.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Apply(ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(fixture.Quarantined(t, dir)); n < 4 {
		t.Fatalf("quarantine holds %d", n)
	}
	if _, err := beside.Get(ctx, s.ids[0]); err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // the previous file is in the pool
		for _, st := range []*varve.Store{st, beside} {
			if _, err := st.Put(ctx,
				varve.Memory{ID: s.ids[0], Content: s.text(rand.New(rand.NewPCG(seed, uint64(3+i))), fmt.Sprint("late ", i),
					3000)}); err != nil {
				t.Fatal(err)
			}
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, pasts := s.others(fixture.Contents(t, st)), s.pasts(t, st)
	where := map[string]bool{}
	for _, f := range s.traces(t, vfs.OS(), dir) {
		rel, _ := filepath.Rel(dir, f)
		where[strings.Split(filepath.ToSlash(rel), "/")[0]] = true
	}
	for _, folder := range []string{"memories", "wal", "backups", "quarantine", "tmp"} {
		if !where[folder] {
			t.Fatalf("the case is too weak: nothing of it is in %s: %v", folder, where)
		}
	}
	// One copy was made by hand, and one deleted file was restored.
	b, err := os.ReadFile(path)
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(dir, "memories", "copy of it.json"), b, 0o600),
			os.WriteFile(filepath.Join(dir, "memories", jsondoc.FileName(s.ids[1])), []byte("what was "+s.ids[1]), 0o600),
			os.WriteFile(filepath.Join(dir, "memories", "notes.txt"), []byte("mine"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := st.Admin().Purge(ctx, s.ids...)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "memories", "notes.txt")); err != nil || string(b) != "mine" {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "memories", "notes.txt")); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	if left := s.traces(t, vfs.OS(), dir); len(left) > 0 {
		t.Errorf("%d traces are left:\n%s", len(left), strings.Join(left[:min(len(left), 20)], "\n"))
	}
	for _, st := range []*varve.Store{st, beside} {
		for _, id := range s.ids {
			if _, err := st.Get(ctx, id); !errors.Is(err, varve.ErrNotFound) {
				t.Errorf("%s: %v", id, err)
			}
		}
		fixture.Compare(t, fixture.Contents(t, st), want, true)
	}
	if got := s.pasts(t, st); fmt.Sprint(got) != fmt.Sprint(pasts) {
		t.Errorf("the others' histories were\n%v\nand are\n%v", pasts, got)
	}
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Next != "" {
			t.Errorf("verify: %+v", f)
		}
	}
	// Both continue to write, and what they write stays.
	for i, st := range []*varve.Store{st, beside} {
		for n := range 30 {
			if _, err := st.Put(ctx,
				varve.Memory{ID: fmt.Sprint("after", i), Content: strings.Repeat("y", 4000+n)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := st.Admin().Purge(ctx, s.ids...); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("a second purge: %v", err)
	}
	want = fixture.Contents(t, st)
	if err := errors.Join(beside.Close(), st.Close()); err != nil {
		t.Fatal(err)
	}
	if left := s.traces(t, vfs.OS(), dir); len(left) > 0 {
		t.Error("after more writing:", left)
	}
	st = fixture.Open(t, dir, fixture.SmallLog)
	fixture.Compare(t, fixture.Contents(t, st), want, true)
}

// A purge is killed at each of its operations, or one fails, and the power is lost afterwards: other
// memories have lost nothing, and a repeated purge is complete.
func TestPurgeCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for what, fault := range map[string]error{"killed": nil, "error": errors.New("injected"), "lacking": nil} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var s *secrets
			var want map[string]varve.Memory
			var pasts map[string][]uint64
			var made *fixture.Rig // made once; each cut gets a copy, as the next boot finds it
			options := func(r *fixture.Rig, seed byte) *varve.Options {
				o := r.Options(seed)
				if what == "killed" {
					storetest.Of(o).Views = []views.Maker{letters.New} // which has a file with ids
				}
				return o
			}
			fixture.CutAtEach(t, func(t *testing.T) *fixture.Rig {
				if made != nil {
					return made.Lose(crash.KeepAll, 1)
				}
				r, _ := fixture.Filled(t)
				if what == "lacking" {
					r.Disk.SetLacks(crash.Lacks{Exchange: true, Link: true, Lease: true, Barrier: true})
				}
				o := options(r, 2)
				st, err := varve.Open(ctx, "/s", o)
				if err != nil {
					t.Fatal(err)
				}
				s = secretive(t, st, 1)
				want, pasts = s.others(fixture.Contents(t, st)), s.pasts(t, st)
				if err := st.Close(); err != nil {
					t.Fatal(err)
				}
				setAsideASegment(t, storetest.Of(o).System.FS, "/s")
				made = r
				return made.Lose(crash.KeepAll, 1)
			}, fault, func(r *fixture.Rig) error {
				st, err := varve.Open(ctx, "/s", options(r, 3))
				if err != nil {
					return err
				}
				r.Disk.KeepFreed() // an index that had to be rebuilt at the open has left such blocks before
				_, err = st.Admin().Purge(ctx, s.ids...)
				return errors.Join(err, st.Close())
			}, func(t *testing.T, r *fixture.Rig, done bool) {
				o := options(r, 4)
				if done {
					// After a loss of power a file that is never synced has the old content of its
					// blocks. The next open rewrites it.
					left := slices.DeleteFunc(s.traces(t, storetest.Of(o).System.FS, "/s"), func(where string) bool {
						return strings.HasPrefix(where, "/s/wal/shared at") || strings.HasPrefix(where, "/s/wal/owner at")
					})
					if len(left) > 0 {
						t.Errorf("it was called done, and left:\n%s", strings.Join(left[:min(len(left), 20)], "\n"))
					}
				}
				// Without links nothing refers to what was to be overwritten when the process was
				// killed.
				if done || what != "lacking" {
					s.checkFreed(t, r.Disk, what == "lacking")
				}
				st, err := varve.Open(ctx, "/s", o)
				if err != nil {
					t.Fatal(err)
				}
				fixture.Compare(t, s.others(fixture.Contents(t, st)), want, true)
				if done {
					remembers(t, st, s.ids...)
				}
				r.Disk.KeepFreed()
				if err := purgeTails(ctx, st, s.ids...); err != nil {
					t.Errorf("once more: %v", err)
				}
				fixture.Compare(t, fixture.Contents(t, st), want, true)
				if got := s.pasts(t, st); fmt.Sprint(got) != fmt.Sprint(pasts) {
					t.Errorf("the others' histories were\n%v\nand are\n%v", pasts, got)
				}
				if err := st.Close(); err != nil {
					t.Error(err)
				}
				if left := s.traces(t, storetest.Of(o).System.FS, "/s"); len(left) > 0 {
					t.Errorf("done again, and left:\n%s", strings.Join(left[:min(len(left), 20)], "\n"))
				}
				if done || what != "lacking" {
					s.checkFreed(t, r.Disk, what == "lacking")
				}
			})
		})
	}
}

// setAsideASegment copies the newest segment that is in use into quarantine.
func setAsideASegment(t *testing.T, fsys vfs.FS, dir string) {
	t.Helper()
	names, err := fsys.ReadDir(filepath.Join(dir, "wal"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range names {
		if filepath.Ext(name) != ".wal" {
			continue
		}
		b, err := vfs.ReadFile(fsys, filepath.Join(dir, "wal", name), 1<<30)
		if err == nil && bytes.Contains(b, []byte("forget-me")) {
			err = vfs.MkdirAll(fsys, filepath.Join(dir, "quarantine"), 0o700)
			if err == nil {
				err = vfs.WriteDurable(fsys, filepath.Join(dir, "quarantine", "x.new"), filepath.Join(dir, "quarantine", name), b,
					0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the case is too weak: no segment has it")
}

// If something cannot be removed yet, the rest is, and the error says what helps.
func TestPurgeRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	make := func(t *testing.T) (*varve.Store, *secrets, string) {
		dir := filepath.Join(t.TempDir(), "s")
		st := fixture.Open(t, dir, fixture.SmallLog)
		return st, secretive(t, st, 7), dir
	}
	again := func(t *testing.T, st *varve.Store, s *secrets, dir string) {
		t.Helper()
		if err := purgeTails(ctx, st, s.ids...); err != nil {
			t.Fatal(err)
		}
		if left := s.traces(t, vfs.OS(), dir); len(left) > 0 {
			t.Error(left[0])
		}
	}
	t.Run("a backup copies the log", func(t *testing.T) {
		st, s, dir := make(t)
		hold, err := storetest.Inner(st).Engine.Log().Archive().Hold(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, err = st.Admin().Purge(ctx, s.ids...)
		var locked *varve.LockError
		if !errors.As(err, &locked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
			t.Fatal(err)
		}
		if err := hold.Release(); err != nil {
			t.Fatal(err)
		}
		again(t, st, s, dir)
	})
	t.Run("a file is open elsewhere", func(t *testing.T) {
		st, s, dir := make(t)
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(filepath.Join(dir, "memories", jsondoc.FileName(s.ids[0])))
		if err != nil {
			t.Fatal(err)
		}
		_, err = st.Admin().Purge(ctx, s.ids...)
		if f, ferr := vfs.OS().OpenFile(f.Name(), os.O_RDONLY, 0); ferr == nil {
			f.Close()
			t.Error("it is still in its place")
		}
		if errors.Is(err, varve.ErrLocked) && !strings.Contains(err.Error(), "tmp/parked/") {
			t.Error(err)
		} else if err == nil && len(s.traces(t, vfs.OS(), dir)) > 0 { // where there are no leases it can go
			t.Error("it was called done")
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		again(t, st, s, dir)
	})
	t.Run("a damaged copy in the archive", func(t *testing.T) {
		st, s, dir := make(t)
		names, err := filepath.Glob(filepath.Join(dir, "wal", "archive", "*.zst"))
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		fixture.Alter(t, names[0], func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		r, err := st.Admin().Purge(ctx, s.ids...)
		if err != nil || len(r.Left) > 0 || len(r.Lost) != 1 ||
			!strings.HasPrefix(r.Lost[0].Error(), "wal/archive/"+filepath.Base(names[0])) {
			t.Fatal(r, err)
		}
		if left := s.traces(t, vfs.OS(), dir); len(left) > 0 {
			t.Error(left[0])
		}
		findings, err := varve.PlanRepair(ctx, dir, fixture.SmallLog, varve.VerifyOptions{})
		if err != nil || len(findings.Actions) > 0 {
			t.Error(findings, err)
		}
	})
	t.Run("read-only", func(t *testing.T) {
		st, s, dir := make(t)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := fixture.Open(t, dir, &varve.Options{ReadOnly: true}).Admin().Purge(ctx, s.ids...); !errors.Is(err,
			varve.ErrReadOnly) {
			t.Error(err)
		}
	})
	t.Run("nothing named", func(t *testing.T) {
		st, _, _ := make(t)
		if _, err := st.Admin().Purge(ctx); !errors.Is(err, varve.ErrInvalid) {
			t.Error(err)
		}
		if _, err := st.Admin().Purge(ctx, "other1", ""); !errors.Is(err, varve.ErrInvalid) {
			t.Error(err)
		}
		if _, err := st.Get(ctx, "other1"); err != nil {
			t.Error(err)
		}
	})
}

// Purged data do not return from a rebuilt index.
func TestPurgeThenFallBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, how := range []string{"backup", "files"} {
		dir := filepath.Join(t.TempDir(), "s")
		st := fixture.Open(t, dir, fixture.SmallLog)
		s := secretive(t, st, 9)
		want := s.others(fixture.Contents(t, st))
		if _, err := st.Admin().Purge(ctx, s.ids...); err != nil {
			t.Fatal(err)
		}
		if how == "files" {
			if err := st.Admin().RebuildIndex(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		if how == "backup" {
			fixture.Alter(t, filepath.Join(dir, "memory_index.json"), func(b []byte) []byte { return b[:len(b)/2] })
		}
		st = fixture.Open(t, dir, fixture.SmallLog)
		if made := st.Admin().OpenReport().Rebuilt; how == "backup" &&
			(made == nil || !strings.HasPrefix(made.From, "backups/")) {
			t.Errorf("%+v", made)
		}
		fixture.Compare(t, fixture.Contents(t, st), want, true)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		if left := s.traces(t, vfs.OS(), dir); len(left) > 0 {
			t.Error(how, left[0])
		}
	}
}
