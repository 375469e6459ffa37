package copies

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/scratch"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/wal/past"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(scratch.Around(m)) }

// follower is a program that ships the log of a store without opening the store.
type follower struct {
	*testing.T
	dir string
	id  past.ID
	at  past.Mark
}

// log returns the log of the folder, and the position up to which it is durable according to the
// checkpoint.
func (f *follower) log() (*past.Log, past.LSN) {
	f.Helper()
	c, err := wal.ReadCheckpoint(vfs.OS(), f.dir)
	if err != nil {
		f.Fatal(err)
	}
	return &past.Log{FS: vfs.OS(), Dir: filepath.Join(f.dir, "wal"),
		Geometry: segment.Geometry{UUID: c.UUID, Size: c.SegmentSize}}, c.Attested.LSN
}

// begin begins with a full copy.
func (f *follower) begin() {
	f.Helper()
	p, to := f.log()
	var err error
	if f.id, err = p.ID(); err != nil {
		f.Fatal(err)
	}
	oldest, _, _, err := p.Oldest(to)
	if err != nil {
		f.Fatal(err)
	}
	if f.at = (past.Mark{LSN: oldest}); f.ship() != nil {
		f.Fatal("a copy that has just begun cannot continue")
	}
	f.sent()
}

// ship reads what is new, and returns the first error.
func (f *follower) ship() error {
	f.Helper()
	p, to := f.log()
	if err := p.Continues(f.Context(), f.id, f.at); err != nil {
		return err
	}
	for piece, err := range p.Pieces(f.Context(), f.at, to) {
		if err != nil {
			return err
		}
		f.at = piece.To
	}
	return nil
}

func (f *follower) sent() {
	f.Helper()
	p, _ := f.log()
	if err := p.SetSent(f.id, f.at, 0, time.Now(), 0o600); err != nil {
		f.Fatal(err)
	}
}

func options() *varve.Options {
	o := &varve.Options{SegmentSize: 64 << 10, NoBackground: true}
	storetest.Of(o).System.SpillBytes = 64 << 10
	return o
}

func (f *follower) open() *varve.Store {
	f.Helper()
	st, err := varve.Open(f.Context(), f.dir, options())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = st.Close() })
	return st
}

var random = rand.New(rand.NewPCG(1, 2)) // text that zstd does not make small

// fill puts memories that take about a number of segments.
func (f *follower) fill(st *varve.Store, segments int) {
	f.Helper()
	for i := range segments * 50 {
		text := make([]byte, 1500)
		for j := range text {
			text[j] = 'a' + byte(random.IntN(26))
		}
		if _, err := st.Put(f.Context(), varve.Memory{ID: fmt.Sprint("k", i), Content: string(text)}); err != nil {
			f.Fatal(err)
		}
		if i%25 == 24 {
			if err := st.Admin().Compact(f.Context()); err != nil {
				f.Fatal(err)
			}
		}
	}
}

func (f *follower) close(st *varve.Store) {
	f.Helper()
	if err := st.Close(); err != nil {
		f.Fatal(err)
	}
}

// The reader of a log is told why it has ended, whatever ended it, once the store was opened again. A
// copy that begins again continues.
func TestReasons(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ends func(f *follower)
		want past.Reason
	}{
		"purge": {want: past.Purged, ends: func(f *follower) {
			st := f.open()
			if _, err := st.Admin().Purge(f.Context(), "k3"); err != nil {
				f.Fatal(err)
			}
			f.close(st)
		}},
		"restore in place": {want: past.Restored, ends: func(f *follower) {
			st := f.open()
			backup := filepath.Join(f.TempDir(), "backup")
			if _, err := st.Backup(f.Context(), backup, varve.BackupOptions{}); err != nil {
				f.Fatal(err)
			}
			f.fill(st, 1)
			f.close(st)
			_, err := varve.Restore(f.Context(), backup, f.dir+".restored", &varve.RestoreOptions{})
			if err = errors.Join(err, os.RemoveAll(f.dir), os.Rename(f.dir+".restored", f.dir)); err != nil {
				f.Fatal(err)
			}
		}},
		"log removed": {want: past.FilesLost, ends: func(f *follower) {
			if err := os.RemoveAll(filepath.Join(f.dir, "wal")); err != nil {
				f.Fatal(err)
			}
		}},
		"repair of a damaged log": {want: past.Repaired, ends: func(f *follower) {
			st := f.open()
			log := storetest.Inner(st).Engine.Log()
			first := log.Durable()
			for i := range 20 {
				if _, err := st.Put(f.Context(), varve.Memory{ID: fmt.Sprint("z", i), Content: "in no file"}); err != nil {
					f.Fatal(err)
				}
			}
			killed := f.dir + ".killed" // as a process that is killed now leaves it
			if err := os.CopyFS(killed, os.DirFS(f.dir)); err != nil {
				f.Fatal(err)
			}
			name := filepath.Join(killed, "wal", segment.Name(log.Past().SegmentOf(first)))
			b, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			b[log.Past().Geometry.Offset(first)+200] ^= 0xff
			f.close(st)
			if err := errors.Join(os.WriteFile(name, b, 0o600), os.RemoveAll(f.dir), os.Rename(killed, f.dir)); err != nil {
				f.Fatal(err)
			}
			plan, err := varve.PlanRepair(f.Context(), f.dir, options(), varve.VerifyOptions{})
			if err == nil {
				_, err = plan.Apply(f.Context())
			}
			if err != nil {
				f.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &follower{T: t, dir: filepath.Join(t.TempDir(), "s")}
			st := f.open()
			f.fill(st, 3)
			f.close(st)
			f.begin()
			c.ends(f)
			st = f.open()
			f.fill(st, 1)
			h := st.Health(t.Context())
			var told *past.EndedError
			if _, err := os.Stat(filepath.Join(f.dir, "wal", "sent")); err == nil &&
				(!errors.As(h.Copy.Err, &told) || told.Reason != c.want || h.OK || !h.Writable) {
				t.Errorf("Health: %+v", h)
			}
			f.close(st)
			err := f.ship()
			var ended *past.EndedError
			if !errors.As(err, &ended) || ended.Reason != c.want || !errors.Is(err, past.ErrBegunAgain) {
				t.Fatalf("the reader got %v, want %v", err, c.want)
			}
			f.begin()
			st = f.open()
			f.fill(st, 1)
			if h := st.Health(t.Context()); !h.OK || !h.Copy.Follows || h.Copy.Err != nil {
				t.Errorf("Health: %+v", h)
			}
			f.close(st)
			if err := f.ship(); err != nil {
				t.Error("a copy that has begun again:", err)
			}
		})
	}
}

// Health reports that a copy is behind once what it lacks was removed, and not before.
func TestBehind(t *testing.T) {
	t.Parallel()
	f := &follower{T: t, dir: filepath.Join(t.TempDir(), "s")}
	st := f.open()
	none, unsent := int64(0), int64(200<<10)
	if err := st.Admin().UpdateConfig(t.Context(), func(c *varve.Config) error {
		c.HistoryBytes, c.UnsentBytes = &none, &unsent
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	f.fill(st, 2)
	if h := st.Health(t.Context()); !h.OK || h.Copy.Follows || st.Admin().Stats().HistoryBytes > 0 {
		t.Fatalf("without a copy: %+v, %d bytes of history", h, st.Admin().Stats().HistoryBytes)
	}
	f.begin()
	f.fill(st, 2)
	h := st.Health(t.Context())
	if kept := st.Admin().Stats().HistoryBytes; !h.OK || !h.Copy.Follows || h.Copy.Sent != f.at.LSN ||
		h.Copy.Behind < 100<<10 ||
		kept < 64<<10 {
		t.Fatalf("a copy that lacks two segments: %+v, %d bytes kept", h, kept)
	}
	if err := f.ship(); err != nil {
		t.Fatal(err)
	}
	f.fill(st, 8)
	h = st.Health(t.Context())
	var behind *varve.CopyBehindError
	if h.OK || !h.Writable || !errors.As(h.Copy.Err, &behind) || !errors.Is(h.Copy.Err, varve.ErrCopyBehind) {
		t.Fatalf("a copy that lacks more than is kept for it: %+v", h)
	}
	f.begin()
	if h := st.Health(t.Context()); !h.OK || h.Copy.Err != nil {
		t.Errorf("a copy that has begun again: %+v", h)
	}
}

// A moved store keeps the history that a copy has: the log is the same.
func TestMoved(t *testing.T) {
	t.Parallel()
	f := &follower{T: t, dir: filepath.Join(t.TempDir(), "s")}
	st := f.open()
	f.fill(st, 2)
	f.close(st)
	f.begin()
	to := f.dir + ".moved"
	if _, err := varve.Migrate(t.Context(), f.dir, to, &varve.MigrateOptions{Switch: true}); err != nil {
		t.Fatal(err)
	}
	f.dir = to
	st = f.open()
	f.fill(st, 1)
	if h := st.Health(t.Context()); !h.OK || !h.Copy.Follows {
		t.Errorf("Health: %+v", h)
	}
	f.close(st)
	if err := f.ship(); err != nil {
		t.Error(err)
	}
}
