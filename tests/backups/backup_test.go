package backups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

// moment is what a run knows of the state after one of its commits.
type moment struct {
	lsn   uint64 // nothing later is at or below it
	time  time.Time
	state map[string]string
	inner uint64 // a position in the middle of the commit, 0 if it has only one entry
}

// past is a run of one writer whose states are recorded outside the store.
type past struct {
	t     *testing.T
	st    *varve.Store
	clock func() time.Time
	rand  *rand.Rand
	state map[string]string
	all   []moment
}

func (p *past) run(commits int) {
	ctx := context.Background()
	for range commits {
		id := func() string { return fmt.Sprint("k", p.rand.IntN(40)) }
		n := 1
		if p.rand.IntN(5) == 0 {
			n = 2 + p.rand.IntN(6)
		}
		b := new(varve.Batch)
		before, puts := p.st.Admin().Stats().Durable, map[string]bool{}
		for range n {
			k := id()
			if p.rand.IntN(4) == 0 {
				b.Delete(k)
				delete(p.state, k)
				delete(puts, k)
				continue
			}
			c := fmt.Sprint(len(p.all), " ", p.rand.Uint64(), strings.Repeat("x", p.rand.IntN(1500)))
			b.Put(varve.Memory{ID: k, Content: c})
			p.state[k], puts[k] = c, true
		}
		if err := p.st.Apply(ctx, b); err != nil {
			p.t.Fatal(err)
		}
		if len(puts) < 2 {
			before = 0
		}
		p.all = append(p.all, moment{p.st.Admin().Stats().Durable - 1, p.clock(), maps.Clone(p.state), before})
		if p.rand.IntN(25) == 0 {
			if err := p.st.Flush(ctx); err != nil {
				p.t.Fatal(err)
			}
		}
	}
}

// For every moment of a random run within the range of a backup and the living log, the restored store
// has the state of the run at that moment; for every other moment the error says so.
func TestRestoreToAMoment(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := context.Background()
	seed := storetest.Seed(t, ".")
	for round := range uint64(3) {
		dir := t.TempDir()
		clock := fixture.Ticking()
		p := &past{t: t, clock: clock, rand: rand.New(rand.NewPCG(seed, round)), state: map[string]string{}}
		o := varve.Options{SegmentSize: 64 << 10, NoBackground: true, Clock: clock}
		p.st = fixture.Open(t, filepath.Join(dir, "s"), &o)
		p.run(60 + p.rand.IntN(150))
		at := len(p.all) // commits before the backup
		backup := filepath.Join(dir, "b")
		info, err := p.st.Backup(ctx, backup, varve.BackupOptions{Packed: round == 1})
		if err != nil {
			t.Fatal(err)
		}
		if info.Memories != int64(len(p.state)) || len(info.Damaged) > 0 {
			t.Fatalf("%d memories in the backup, %d in the store: %+v", info.Memories, len(p.state), info)
		}
		if again, err := varve.CheckBackup(ctx, backup); err != nil || again.Sum != info.Sum {
			t.Fatalf("%+v, %v", again, err)
		}
		p.run(60 + p.rand.IntN(150))
		last := p.all[len(p.all)-1]
		n := 0
		restore := func(ro varve.RestoreOptions) (varve.RestoreReport, string, error) {
			n++
			to := filepath.Join(dir, fmt.Sprint("r", n))
			ro.Options = &varve.Options{Clock: clock, SegmentSize: 64 << 10} // small ones are written sooner
			r, err := varve.Restore(ctx, backup, to, &ro)
			if _, serr := os.Stat(to); err != nil && serr == nil {
				t.Fatalf("it failed (%v) and left a folder", err)
			}
			if left, _ := filepath.Glob(to + ".*"); len(left) > 0 {
				t.Fatalf("left behind: %v", left)
			}
			return r, to, err
		}
		_, to, err := restore(varve.RestoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		storetest.SameTexts(t, "the end", fixture.TextsOf(t, to), p.all[at-1].state)
		living := filepath.Join(dir, "s")
		for range 8 {
			i := at - 1 + p.rand.IntN(len(p.all)-at+1)
			m := p.all[i]
			for _, ro := range []varve.RestoreOptions{{Version: m.lsn, Log: living}, {Time: m.time, Log: living}} {
				r, to, err := restore(ro)
				if err != nil {
					t.Fatalf("moment %d of %d, backup at %d: %v", i, len(p.all), at, err)
				}
				storetest.SameTexts(t, fmt.Sprintf("moment %d of %d", i, len(p.all)), fixture.TextsOf(t, to), m.state)
				if r.Moment.LSN > m.lsn || r.Memories != int64(len(m.state)) {
					t.Fatalf("report %+v", r)
				}
			}
		}
		for i := at; i < len(p.all); i++ {
			if m := p.all[i]; m.inner != 0 { // half a batch does not count
				_, to, err := restore(varve.RestoreOptions{Version: m.inner, Log: living})
				if err != nil {
					t.Fatal(err)
				}
				storetest.SameTexts(t, fmt.Sprintf("in the middle of commit %d", i), fixture.TextsOf(t, to), p.all[i-1].state)
				break
			}
		}
		var no *varve.MomentError
		for what, ro := range map[string]varve.RestoreOptions{
			"before the backup, by version":   {Version: p.all[at/2].lsn, Log: living},
			"before the backup, by time":      {Time: p.all[at/2].time},
			"the version before its first":    {Version: info.First.LSN - 1},
			"behind its end, by version":      {Version: last.lsn},
			"behind its end, by time":         {Time: last.time},
			"behind the living store's end":   {Version: last.lsn + 4096, Log: living},
			"before there was a store at all": {Time: time.Unix(1, 0)},
		} {
			if _, _, err := restore(ro); !errors.As(err, &no) || !errors.Is(err, varve.ErrTruncated) {
				t.Fatalf("%s: %v", what, err)
			}
		}
		// The living log with a hole after the position of the backup.
		for range 2 {
			p.run(1)
			if err := p.st.Admin().Compact(ctx); err != nil {
				t.Fatal(err)
			}
		}
		last = p.all[len(p.all)-1]
		if err := os.RemoveAll(filepath.Join(living, "wal", "archive")); err != nil {
			t.Fatal(err)
		}
		oldest, err := storetest.Inner(p.st).Engine.Log().Past().From(ctx, 0, p.st.Admin().Stats().Durable)
		if err != nil {
			t.Fatal(err)
		}
		holed := oldest > info.End.LSN
		if _, _, err := restore(varve.RestoreOptions{Time: last.time, Log: living}); holed != errors.Is(err,
			varve.ErrTruncated) || !holed && err != nil {
			t.Fatalf("the backup ends at %d, the log reaches back to %d: %v", info.End.LSN, oldest, err)
		}
		if _, _, err := restore(varve.RestoreOptions{Time: p.all[at-1].time}); err != nil {
			t.Fatal(err)
		}
		// A new store: it has another UUID, and no version of the old store is valid in it.
		re := fixture.Open(t, to, &varve.Options{Clock: clock})
		if re.Admin().Stats().UUID == p.st.Admin().Stats().UUID {
			t.Fatal("the restored store has the old one's UUID")
		}
		for id := range p.all[at-1].state {
			m, err := re.Put(ctx, varve.Memory{ID: id, Content: "new"})
			if err != nil || m.Version <= last.lsn {
				t.Fatalf("version %d, the old store's go up to %d: %v", m.Version, last.lsn, err)
			}
		}
	}
}

// FAILURES 14. Backups that are made while several processes write and delete: every version that their
// log has can be restored, from the first on, with the state of that moment.
func TestBackupBesideWriters(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	living := filepath.Join(dir, "s")
	o := &varve.Options{SegmentSize: 64 << 10}
	st := fixture.Open(t, living, o)
	other := fixture.Open(t, living, o)
	for i := range 300 {
		if _, err := st.Put(ctx,
			varve.Memory{ID: fmt.Sprint("old", i), Content: fmt.Sprint(i, strings.Repeat("y", 500))}); err != nil {
			t.Fatal(err)
		}
	}
	type wrote struct {
		id, content string
	}
	var mu sync.Mutex
	byVersion := map[uint64]wrote{}
	// A ghost is put at a version and deleted between two positions.
	type ghost struct {
		id                 string
		put, before, after uint64
	}
	var ghosts []ghost
	for i := range 160 { // some were in files long before
		id := fmt.Sprint("ghost", i/40, ".", i%40)
		m, err := st.Put(ctx, varve.Memory{ID: id, Content: "soon gone"})
		if err != nil {
			t.Fatal(err)
		}
		ghosts = append(ghosts, ghost{id: id, put: m.Version})
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 4 {
		h := []*varve.Store{st, other}[w%2]
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if i%3 == 1 {
					g := ghost{id: fmt.Sprint("ghost", w, ".", i/3%40)}
					m, err := h.Put(ctx, varve.Memory{ID: g.id, Content: "soon gone"})
					if err == nil {
						g.put, g.before = m.Version, h.Admin().Stats().Durable
						err = h.Delete(ctx, g.id)
						g.after = h.Admin().Stats().Durable
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					ghosts = append(ghosts, g)
					mu.Unlock()
				}
				m := varve.Memory{ID: fmt.Sprint("old", (i*7+w*75)%300),
					Content: fmt.Sprint("w", w, " ", i, strings.Repeat("z", 300))}
				m, err := h.Put(ctx, m)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				byVersion[m.Version] = wrote{m.ID, m.Content}
				mu.Unlock()
				time.Sleep(time.Millisecond)
			}
		})
	}
	var infos []varve.BackupInfo
	for i := range 3 {
		info, err := st.Backup(ctx, filepath.Join(dir, fmt.Sprint("b", i)), varve.BackupOptions{})
		if err != nil {
			t.Error(err)
			break
		}
		infos = append(infos, info)
	}
	close(stop)
	wg.Wait()
	slices.SortFunc(ghosts, func(a, b ghost) int { return cmp.Compare(a.put, b.put) })
	for i, info := range infos {
		want := func(lsn uint64) map[string]string {
			state, at := map[string]string{}, map[string]uint64{}
			for i := range 300 {
				state[fmt.Sprint("old", i)] = fmt.Sprint(i, strings.Repeat("y", 500))
			}
			for v, w := range byVersion {
				if v <= lsn && v > at[w.id] {
					state[w.id], at[w.id] = w.content, v
				}
			}
			return state
		}
		for j, lsn := range []uint64{info.First.LSN, (info.First.LSN + info.Last.LSN) / 2, info.Last.LSN} {
			to := filepath.Join(dir, fmt.Sprint("r", i, ".", j))
			if _, err := varve.Restore(ctx, filepath.Join(dir, fmt.Sprint("b", i)), to,
				&varve.RestoreOptions{Version: lsn}); err != nil {
				t.Fatalf("%+v: %v", info, err)
			}
			got := fixture.TextsOf(t, to)
			state := map[string]string{}
			for _, g := range ghosts {
				if g.put > lsn {
					continue
				}
				// The newest lifetime that had begun decides; the end of the first one is the end of the
				// next.
				switch {
				case g.after == 0, lsn < g.before:
					state[g.id] = "soon gone"
				case lsn+1 >= g.after:
					delete(state, g.id)
				default:
					state[g.id] = got[g.id] // between the two it may exist or not
				}
				if state[g.id] == "" {
					delete(state, g.id)
				}
			}
			maps.Copy(state, want(lsn))
			storetest.SameTexts(t, fmt.Sprintf("backup %d at %d", i, lsn), got, state)
		}
	}
}

// Damage anywhere in a backup is found, by CheckBackup and by Restore, and an incomplete backup is none.
func TestBackupDamaged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, filepath.Join(dir, "s"), fixture.SmallLog)
	for i := range 30 {
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	backup := filepath.Join(dir, "b")
	if _, err := st.Backup(ctx, backup, varve.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Backup(ctx, backup, varve.BackupOptions{}); !errors.Is(err, varve.ErrInvalid) {
		t.Fatalf("over another one: %v", err)
	}
	if _, err := st.Backup(ctx, filepath.Join(dir, "s", "memories", "b"), varve.BackupOptions{}); !errors.Is(err,
		varve.ErrInvalid) {
		t.Fatalf("into the store: %v", err)
	}
	if _, err := varve.Open(ctx, backup, nil); !errors.Is(err, varve.ErrNoStore) || !strings.Contains(err.Error(),
		"memctl restore") {
		t.Fatalf("a backup opened as a store: %v", err)
	}
	if _, err := varve.Restore(ctx, backup, filepath.Join(dir, "s"), nil); !errors.Is(err, varve.ErrInvalid) {
		t.Fatalf("restored over a store: %v", err)
	}
	var files []string
	for _, pattern := range []string{"*.json", "*.sha256", "memories/k7.json", "wal/*.wal"} {
		list, err := filepath.Glob(filepath.Join(backup, pattern))
		if err != nil || len(list) == 0 {
			t.Fatal(pattern, list, err)
		}
		files = append(files, list...)
	}
	for _, name := range files {
		for what, damage := range map[string]func(b []byte) []byte{
			"bit":     func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
			"cut":     func(b []byte) []byte { return b[:len(b)/2] },
			"emptied": func(b []byte) []byte { return b[:0] },
			"deleted": func([]byte) []byte { return nil },
		} {
			sound, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			fixture.Alter(t, name, damage)
			_, err1 := varve.CheckBackup(ctx, backup)
			_, err2 := varve.Restore(ctx, backup, filepath.Join(dir, "r"), &varve.RestoreOptions{Strict: true})
			for _, err := range []error{err1, err2} {
				if !errors.Is(err, varve.ErrCorrupt) && !errors.Is(err, varve.ErrTruncated) &&
					!(errors.Is(err, varve.ErrNoStore) && filepath.Base(name) == repair.BackupName) {
					t.Errorf("%s, %s: %v", filepath.Base(name), what, err)
				}
			}
			if err := os.WriteFile(name, sound, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.partial*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := varve.Restore(ctx, backup, filepath.Join(dir, "r"), nil); err != nil {
		t.Fatal(err)
	}
}

// FAILURES 83: a backup that takes longer than the log's budget permits fails by itself; no put fails,
// and nothing of the backup is left.
func TestBackupPastTheBudget(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	o := storetest.In(&varve.Options{SegmentSize: 64 << 10, NoBackground: true},
		storetest.Environment{System: vfs.System{BacklogBytes: 512 << 10}})
	st := fixture.Open(t, filepath.Join(dir, "s"), o)
	other := fixture.Open(t, filepath.Join(dir, "s"), o)
	for i := range 50 {
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	puts := 0
	_, err := st.Backup(ctx, filepath.Join(dir, "b"), varve.BackupOptions{Progress: func(done, _ int64) {
		for range 20 * int(done) {
			if _, err := other.Put(ctx, varve.Memory{ID: "busy", Content: strings.Repeat("x", 3000)}); err != nil {
				t.Fatalf("put %d during the backup: %v", puts, err)
			}
			puts++
		}
	}})
	if !errors.Is(err, varve.ErrLimit) || puts == 0 {
		t.Fatalf("after %d puts: %v", puts, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "b*")); len(left) > 0 {
		t.Fatalf("left behind: %v", left)
	}
	info, err := st.Backup(ctx, filepath.Join(dir, "b"), varve.BackupOptions{})
	if err != nil || info.Memories != 51 {
		t.Fatalf("%+v, %v", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "b.*")); len(left) > 0 {
		t.Fatalf("left behind: %v", left)
	}
}

// A memory that cannot be read anymore does not prevent the backup of the others, and is named.
func TestBackupOfADamagedMemory(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, want := fixture.Aged(t)
	if err := os.RemoveAll(filepath.Join(dir, "wal", "archive")); err != nil {
		t.Fatal(err)
	}
	victim := ""
	oldest := uint64(1 << 60)
	for id, m := range want { // the oldest, so that the log no longer has it
		if m.Version < oldest {
			victim, oldest = id, m.Version
		}
	}
	fixture.Alter(t, filepath.Join(dir, "memories", victim+".json"), func(b []byte) []byte { return b[:len(b)/2] })
	st := fixture.Open(t, dir, fixture.SmallLog)
	backup := filepath.Join(t.TempDir(), "b")
	info, err := st.Backup(ctx, backup, varve.BackupOptions{})
	if err != nil || len(info.Damaged) != 1 || info.Damaged[0].ID != victim || info.Memories != int64(len(want)-1) {
		t.Fatalf("%+v, %v", info, err)
	}
	to := filepath.Join(t.TempDir(), "r")
	r, err := varve.Restore(ctx, backup, to, nil)
	if err != nil || len(r.Damaged) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	delete(want, victim)
	fixture.Compare(t, fixture.Contents(t, fixture.Open(t, to, nil)), want, false)
}

// Expired memories are in a backup too: a clock may have been wrong.
func TestBackupOfTheExpired(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	clock := fixture.ClockAt(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	o := &varve.Options{NoBackground: true, Clock: clock.Now}
	st := fixture.Open(t, filepath.Join(dir, "s"), o)
	if _, err := st.Put(ctx, varve.Memory{ID: "short", Content: "x", ExpiresAt: clock.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	clock.Add(2 * time.Hour)
	if _, err := st.Get(ctx, "short"); !errors.Is(err, varve.ErrNotFound) {
		t.Fatal(err)
	}
	if info, err := st.Backup(ctx, filepath.Join(dir, "b"), varve.BackupOptions{}); err != nil || info.Memories != 1 {
		t.Fatalf("%+v, %v", info, err)
	}
	if _, err := varve.Restore(ctx, filepath.Join(dir, "b"), filepath.Join(dir, "r"),
		&varve.RestoreOptions{Options: o}); err != nil {
		t.Fatal(err)
	}
	clock.Add(-2 * time.Hour)
	if _, err := fixture.Open(t, filepath.Join(dir, "r"), o).Get(ctx, "short"); err != nil {
		t.Fatal(err)
	}
}

// FAILURES 14. Other processes write, and are killed: writes that were acknowledged before a backup
// began are in it.
func TestBackupBesideProcesses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	living := filepath.Join(dir, "s")
	st := fixture.Open(t, living, nil)
	for round := range storetest.Repeat(t, 1) {
		acknowledged := map[string]bool{}
		var children []*exec.Cmd
		for w := range 2 {
			cmd, out := storetest.Start(t, fmt.Sprintf("load:%d-%d", round, w), living)
			children = append(children, cmd)
			for range 60 {
				line, err := out.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				what, id, _ := strings.Cut(strings.TrimSpace(line), " ")
				switch what {
				case "put":
					acknowledged[id] = true
				case "deleting":
					delete(acknowledged, id)
				}
			}
			go func() { _, _ = io.Copy(io.Discard, out) }()
		}
		backup := filepath.Join(dir, fmt.Sprint("b", round))
		_, err := st.Backup(ctx, backup, varve.BackupOptions{})
		for _, cmd := range children {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, fmt.Sprint("r", round))
		if _, err := varve.Restore(ctx, backup, to, nil); err != nil {
			t.Fatal(err)
		}
		got := fixture.TextsOf(t, to)
		for id := range acknowledged {
			if got[id] == "" {
				t.Errorf("%s was acknowledged before the backup began, and is not in it", id)
			}
		}
	}
}
