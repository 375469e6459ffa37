package purges

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// shown returns a history with a line for each version.
func shown(t testing.TB, st *varve.Store, id string) (list []string) {
	t.Helper()
	for v, err := range st.History(t.Context(), id) {
		if errors.Is(err, varve.ErrNotFound) {
			return nil
		}
		fixture.Must(t, err)
		what := "deleted"
		switch {
		case v.Redacted:
			what = "redacted"
			if len(v.Document) > 0 || v.Size != 0 || v.ContentHash != [32]byte{} || v.RedactedAt.IsZero() || v.Time.IsZero() {
				t.Errorf("%s@%d says %+v", id, v.LSN, v)
			}
			if _, err := v.Decode(); !errors.Is(err, varve.ErrRedacted) {
				t.Errorf("%s@%d decodes with %v", id, v.LSN, err)
			}
		case !v.Deleted:
			m, err := v.Decode()
			fixture.Must(t, err)
			what = m.Content
		}
		list = append(list, fmt.Sprint(v.LSN, " ", what))
	}
	return list
}

// One version is redacted: from then on nothing shows its content, and when it is overwritten no file
// has it. Everything else of the memory and of others stays, even with equal bytes.
func TestRedact(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()+"/s"
	now := time.Now()
	st, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true, SegmentSize: 64 << 10,
		Clock: func() time.Time { return now }})
	fixture.Must(t, err)
	defer st.Close()
	admin := st.Admin()
	put := func(content string) uint64 {
		t.Helper()
		now = now.Add(time.Second)
		m, err := st.Put(ctx, varve.Memory{ID: "note", Content: content, Embedding: []float32{1, float32(len(content))}})
		fixture.Must(t, err)
		return m.Version
	}
	s := toldSecrets("")
	first := put("harmless")
	bad := put(strings.Repeat(told, 400)) // compressed
	fixture.Must(t, st.Flush(ctx))
	_, err = st.Search(ctx, varve.Query{Text: "nobody"}) // makes the words
	fixture.Must(t, err)
	if _, err := admin.PurgeVersion(ctx, "note", bad); !errors.Is(err, varve.ErrConflict) {
		t.Errorf("the current version: %v", err)
	}
	last := put("harmless too")
	before := shown(t, st, "note")
	var none *varve.NoVersionError
	if _, err := admin.PurgeVersion(ctx, "note", bad+8); !errors.As(err, &none) {
		t.Error(err)
	}
	if _, err := admin.PurgeVersion(ctx, "nobody", bad); !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
	r, err := admin.PurgeVersion(ctx, "note", bad)
	fixture.Must(t, err)
	if r.Already || len(r.Equal) > 0 {
		t.Error(r)
	}
	if r, err = admin.PurgeVersion(ctx, "note", bad); err != nil || !r.Already {
		t.Error(r, err)
	}
	check := func(when string) {
		t.Helper()
		want := slices.Clone(before)
		want[1] = fmt.Sprint(bad, " redacted")
		if got := shown(t, st, "note"); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
		var redacted *varve.RedactedError
		if _, err := st.GetAt(ctx, "note", bad); !errors.As(err, &redacted) || redacted.Version != bad {
			t.Errorf("%s: GetAt: %v", when, err)
		}
		if _, err := st.Revert(ctx, "note", bad); !errors.Is(err, varve.ErrRedacted) {
			t.Errorf("%s: Revert: %v", when, err)
		}
		for _, version := range []uint64{first, last} {
			if _, err := st.GetAt(ctx, "note", version); err != nil {
				t.Errorf("%s: version %d: %v", when, version, err)
			}
		}
		for c, err := range admin.Changes(ctx, 0) {
			if err == nil && strings.Contains(c.Memory.Content, told) {
				t.Errorf("%s: the change %d is shown", when, c.LSN)
			}
		}
	}
	check("redacted")
	if n := admin.Stats().ToOverwrite; n != 1 {
		t.Errorf("%d to overwrite", n)
	}
	inner := storetest.Inner(st)
	inner.Purger.OverwriteDue(ctx) // not yet
	if n := admin.Stats().ToOverwrite; n != 1 {
		t.Errorf("%d to overwrite before the minute is over", n)
	}
	now = now.Add(2 * time.Minute)
	inner.Purger.OverwriteDue(ctx)
	if n := admin.Stats().ToOverwrite; n != 0 {
		t.Errorf("%d to overwrite", n)
	}
	check("overwritten")
	if left := s.traces(t, vfs.OS(), dir); len(left) > 0 {
		t.Errorf("left: %s", left[0])
	}
	storetest.AllWell(t, admin.Verify(ctx, varve.VerifyOptions{}))

	// Equal bytes stay; of a deleted memory the last version is redacted, and undelete finds it so.
	back := put("to be overtaken")
	again := put("it is overtaken")
	_, err = st.Undo(ctx, varve.UndoOptions{Position: again}) // puts exact bytes back
	fixture.Must(t, err)
	m, err := st.Get(ctx, "note")
	fixture.Must(t, err)
	if r, err = admin.PurgeVersion(ctx, "note", back); err != nil || !slices.Equal(r.Equal, []uint64{m.Version}) {
		t.Errorf("equal to %d is %v, %v", back, r, err)
	}
	_, err = admin.OverwriteRedacted(ctx)
	fixture.Must(t, err)
	if m, err := st.Get(ctx, "note"); err != nil || m.Content != "to be overtaken" {
		t.Error(m.Content, err)
	}
	final := put("again something else")
	fixture.Must(t, st.Delete(ctx, "note"))
	if _, err = admin.PurgeVersion(ctx, "note", final); err != nil {
		t.Error(err)
	}
	if _, err := st.Undelete(ctx, "note"); !errors.Is(err, varve.ErrRedacted) {
		t.Errorf("undelete: %v", err)
	}
	for v := range st.History(ctx, "note") {
		if v.Deleted {
			if _, err := admin.PurgeVersion(ctx, "note", v.LSN); !errors.Is(err, varve.ErrInvalid) {
				t.Errorf("the deletion: %v", err)
			}
		}
	}

	// Purged as a whole, nothing is shown of it anymore.
	_, err = admin.Purge(ctx, "note")
	fixture.Must(t, err)
	if list := shown(t, st, "note"); len(list) > 0 || admin.Stats().ToOverwrite > 0 {
		t.Error(list, admin.Stats().ToOverwrite)
	}
}

// A backup never has a redacted version, whenever it is made; a restore of an older backup omits it,
// even at a moment at which it was the memory's newest.
func TestRedactedIsInNoBackup(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	s := toldSecrets("")
	st := openLasting(t, dir+"/s")
	versions := map[string]uint64{}
	for _, content := range []string{told, "harmless"} {
		m, err := st.Put(ctx, varve.Memory{ID: "note", Content: content})
		fixture.Must(t, err)
		versions[content] = m.Version
		if content == told {
			_, err = st.Backup(ctx, dir+"/old", varve.BackupOptions{})
			fixture.Must(t, err)
			_, err = st.Put(ctx, varve.Memory{ID: "l", Content: "l"})
			fixture.Must(t, err)
		}
	}
	_, err := st.Admin().PurgeVersion(ctx, "note", versions[told])
	fixture.Must(t, err)
	_, err = st.Backup(ctx, dir+"/new", varve.BackupOptions{})
	fixture.Must(t, err)
	if left := s.traces(t, vfs.OS(), dir+"/new"); len(left) > 0 {
		t.Error(left[0])
	}
	fixture.Must(t, st.Close())
	for _, c := range []struct {
		at   uint64
		want string
	}{{versions[told] + 8, "[l]"}, {0, "[l note]"}} {
		to := fmt.Sprint(dir, "/at", c.at)
		o := varve.RestoreOptions{Log: dir + "/s", Options: lasting()}
		if c.at != 0 {
			o.Version = versions["harmless"] - 8
		}
		_, err := varve.Restore(ctx, dir+"/old", to, &o)
		fixture.Must(t, err)
		if got := fmt.Sprint(held(t, openLasting(t, to))); got != c.want {
			t.Errorf("at %d: %s, want %s", c.at, got, c.want)
		}
		if left := s.traces(t, vfs.OS(), to); len(left) > 0 {
			t.Error(left[0])
		}
	}
}

// A redaction is killed at any operation, or one fails, and the power is lost afterwards: an
// acknowledged redaction holds, everything else is unchanged, and after a repetition nothing is left.
func TestRedactCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for what, fault := range map[string]error{"killed": nil, "error": errors.New("injected")} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := toldSecrets("")
			var made *fixture.Rig
			var bad uint64
			var want map[string]string
			committed := false
			fixture.CutAtEach(t, func(t *testing.T) *fixture.Rig {
				committed = false
				if made != nil {
					return made.Lose(crash.KeepAll, 1)
				}
				r, _ := fixture.Filled(t)
				st, err := varve.Open(ctx, "/s", r.Options(2))
				fixture.Must(t, err)
				for i, content := range []string{"x", strings.Repeat(told, 30), "y", "z"} {
					m, err := st.Put(ctx, varve.Memory{ID: "k1", Content: content})
					fixture.Must(t, err)
					if i == 1 {
						bad = m.Version
						fixture.Must(t, st.Flush(ctx))
					}
				}
				want = fixture.ContentsOf(t, st)
				fixture.Must(t, st.Close())
				made = r
				return made.Lose(crash.KeepAll, 1)
			}, fault, func(r *fixture.Rig) error {
				st, err := varve.Open(ctx, "/s", r.Options(3))
				if err != nil {
					return err
				}
				_, err = st.Admin().PurgeVersion(ctx, "k1", bad)
				if committed = err == nil; err == nil {
					_, err = st.Admin().OverwriteRedacted(ctx)
				}
				return errors.Join(err, st.Close())
			}, func(t *testing.T, r *fixture.Rig, done bool) {
				o := r.Options(4)
				fsys := storetest.Of(o).System.FS
				if done {
					if left := s.traces(t, fsys, "/s"); len(left) > 0 {
						t.Errorf("it was called done, and left %s", left[0])
					}
				}
				st, err := varve.Open(ctx, "/s", o)
				fixture.Must(t, err)
				if got := fixture.ContentsOf(t, st); !maps.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
				list := strings.Join(shown(t, st, "k1"), "\n")
				if committed && strings.Contains(list, told) {
					t.Errorf("it was acknowledged, and is shown: %s", list)
				}
				if committed && !done && st.Admin().Stats().ToOverwrite != 1 && strings.Contains(list, "redacted") {
					if left := s.traces(t, fsys, "/s"); len(left) > 0 {
						t.Errorf("nothing is counted as left to overwrite, and there is %s", left[0])
					}
				}
				if _, err := st.Admin().PurgeVersion(ctx, "k1", bad); err != nil {
					t.Error(err)
				}
				if _, err := st.Admin().OverwriteRedacted(ctx); err != nil {
					t.Error(err)
				}
				if got := fixture.ContentsOf(t, st); !maps.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
				list = strings.Join(shown(t, st, "k1"), "\n")
				if strings.Contains(list, told) || strings.Count(list, "\n") < 4 ||
					!strings.Contains(list, fmt.Sprint(bad, " redacted")) {
					t.Errorf("done again: %s", list)
				}
				fixture.Must(t, st.Close())
				if left := s.traces(t, fsys, "/s"); len(left) > 0 {
					t.Errorf("done again, and left %s", left[0])
				}
			})
		})
	}
}

// On a full disk a redaction is committed, or refused; when there is space again it is completed.
func TestRedactOnAFullDisk(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := t.Context()
	for free := int64(0); free < 64<<10; free += 8 << 10 {
		s := toldSecrets("")
		r, _ := fixture.Filled(t)
		st, err := varve.Open(ctx, "/s", r.Options(2))
		fixture.Must(t, err)
		var bad uint64
		for _, content := range []string{strings.Repeat(told, 30), "y"} {
			m, err := st.Put(ctx, varve.Memory{ID: "k1", Content: content})
			fixture.Must(t, err)
			bad = cmpFirst(bad, m.Version)
		}
		fixture.Must(t, st.Flush(ctx))
		r.Disk.SetCapacity(r.Disk.Used() + free)
		_, err = st.Admin().PurgeVersion(ctx, "k1", bad)
		if err == nil {
			if list := strings.Join(shown(t, st, "k1"), "\n"); strings.Contains(list, told) {
				t.Errorf("%d bytes free: %s", free, list)
			}
			_, err = st.Admin().OverwriteRedacted(ctx)
		}
		if err != nil && !errors.Is(err, varve.ErrDiskFull) {
			t.Errorf("%d bytes free: %v", free, err)
		}
		r.Disk.SetCapacity(0)
		if _, err := st.Admin().PurgeVersion(ctx, "k1", bad); err != nil {
			t.Errorf("%d bytes free, then there is room: %v", free, err)
		}
		if _, err := st.Admin().OverwriteRedacted(ctx); err != nil {
			t.Errorf("%d bytes free, then there is room: %v", free, err)
		}
		fixture.Must(t, st.Close())
		if left := s.traces(t, storetest.Of(r.Options(3)).System.FS, "/s"); len(left) > 0 {
			t.Errorf("%d bytes free, then there is room: %s", free, left[0])
		}
	}
}

func cmpFirst(a, b uint64) uint64 {
	if a != 0 {
		return a
	}
	return b
}

// A reader that pages through a history continues while versions of it are redacted and overwritten, and
// sees each version once, in order.
func TestRedactBesideAReader(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()+"/s"
	st := openLasting(t, dir)
	var versions []uint64
	for i := range 60 {
		m, err := st.Put(ctx, varve.Memory{ID: "note", Content: fmt.Sprint(i, strings.Repeat("x", 5000))})
		fixture.Must(t, err)
		versions = append(versions, m.Version)
	}
	fixture.Must(t, st.Flush(ctx))
	var seen []uint64
	for v, err := range st.History(ctx, "note") {
		fixture.Must(t, err)
		if seen = append(seen, v.LSN); len(seen)%20 == 0 {
			for _, version := range versions[len(seen)-5 : min(len(seen)+5, len(versions)-1)] {
				_, err := st.Admin().PurgeVersion(ctx, "note", version)
				fixture.Must(t, err)
			}
			_, err := st.Admin().OverwriteRedacted(ctx)
			fixture.Must(t, err)
		}
	}
	// A version that was redacted when the reader had begun, and overwritten before it came to it, is missing or shown.
	if !slices.IsSorted(seen) || len(seen) < len(versions)-15 || len(slices.Compact(slices.Clone(seen))) != len(seen) {
		t.Errorf("%d of %d versions: %v", len(seen), len(versions), seen)
	}
	if got := shown(t, st, "note"); len(got) != len(versions) {
		t.Errorf("%d versions afterwards, want %d", len(got), len(versions))
	}
}

// Versions are purged, redacted, put and deleted in any order, with kills, losses of power, rebuilds,
// backups and restores in between: every version is as an oracle says.
func TestPurgesModel(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := context.Background()
	runs := 12
	if proofs.Long() {
		runs = 150
	} else if !proofs.Everyday() {
		runs = 40
	}
	base := proofs.Seed(t, 0)
	for run := range runs {
		seed := base + uint64(run)
		rng := rand.New(rand.NewPCG(seed, 5))
		r := &fixture.Rig{Disk: crash.New(), Clock: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
		type version struct {
			lsn      uint64
			content  string // "": a deletion
			redacted bool
		}
		histories := map[string][]version{} // what is not purged
		gone := map[string]bool{}           // texts that no store may show
		dir, backups := "/s", []string{}
		rebuilt := false // histories may be shorter
		opened := byte(1)
		open := func() *varve.Store {
			opened++
			st, err := varve.Open(ctx, dir, r.Options(opened))
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			return st
		}
		st := open()
		n := 0
		check := func(what string) {
			t.Helper()
			for id, want := range histories {
				m, err := st.Get(ctx, id)
				last := version{}
				if len(want) > 0 {
					last = want[len(want)-1]
				}
				if (err == nil) != (last.content != "") || err == nil && m.Content != last.content {
					t.Fatalf("seed %d, %s: %s is %.40q, %v, want %.40q", seed, what, id, m.Content, err, last.content)
				}
				for v, err := range st.History(ctx, id) {
					if errors.Is(err, varve.ErrNotFound) {
						break
					}
					if err != nil {
						t.Fatalf("seed %d, %s: %s: %v", seed, what, id, err)
					}
					i := slices.IndexFunc(want, func(w version) bool { return w.lsn == v.LSN })
					if i < 0 && !rebuilt {
						t.Fatalf("seed %d, %s: %s has version %d, which it should not have", seed, what, id, v.LSN)
					}
					if i >= 0 && v.Redacted != want[i].redacted {
						t.Fatalf("seed %d, %s: %s@%d: redacted is %v", seed, what, id, v.LSN, v.Redacted)
					}
					for text := range gone {
						if bytes.Contains(v.Document, []byte(text)) {
							t.Fatalf("seed %d, %s: %s@%d shows what is gone", seed, what, id, v.LSN)
						}
					}
				}
			}
		}
		for step := range 40 {
			id := fmt.Sprint("m", rng.IntN(4))
			h := histories[id]
			lives := len(h) > 0 && h[len(h)-1].content != ""
			what := fmt.Sprint("step ", step, ": ")
			switch k := rng.IntN(16); {
			case k < 6:
				n++
				content := fmt.Sprintf("text %d of run %d is %x%s", n, run, rng.Uint64(), strings.Repeat("!", rng.IntN(3000)))
				m, err := st.Put(ctx, varve.Memory{ID: id, Content: content})
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				histories[id] = append(h, version{lsn: m.Version, content: content})
				what += "put " + id
			case k < 7 && lives:
				if err := st.Delete(ctx, id); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				last := uint64(0)
				for v := range st.History(ctx, id) {
					last = v.LSN
				}
				histories[id] = append(h, version{lsn: last})
				what += "delete " + id
			case k < 9 && len(h) > 0:
				if _, err := st.Admin().Purge(ctx, id); err != nil && !errors.Is(err, varve.ErrNotFound) {
					t.Fatalf("seed %d: %v", seed, err)
				}
				for _, v := range h {
					if v.content != "" {
						gone[v.content[:30]] = true
					}
				}
				histories[id] = nil
				what += "purge " + id
			case k < 11 && len(h) > 1 && !rebuilt:
				i := rng.IntN(len(h) - 1)
				if h[i].content == "" {
					continue
				}
				if _, err := st.Admin().PurgeVersion(ctx, id, h[i].lsn); err != nil {
					t.Fatalf("seed %d, %s: %s@%d: %v", seed, what, id, h[i].lsn, err)
				}
				gone[h[i].content[:30]] = true
				h[i].redacted = true
				what += fmt.Sprint("redact ", id, "@", h[i].lsn)
			case k < 12:
				if _, err := st.Admin().OverwriteRedacted(ctx); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				what += "overwrite"
			case k < 13:
				r = r.Lose([]crash.Pattern{crash.KeepAll, crash.LoseAll, crash.KeepRandom}[rng.IntN(3)], seed+uint64(step))
				st = open()
				what += "power"
			case k < 14:
				b := fmt.Sprint("/backup", step)
				if _, err := st.Backup(ctx, b, varve.BackupOptions{}); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				backups = append(backups, b)
				what += "backup"
			case k < 15 && len(backups) > 0 && dir == "/s":
				// Its end, by the living log: the state is that of now.
				if err := st.Close(); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				opened++
				_, err := varve.Restore(ctx, backups[rng.IntN(len(backups))], "/r",
					&varve.RestoreOptions{Log: dir, Options: r.Options(opened)})
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				dir, rebuilt = "/r", true
				st = open()
				what += "restore"
			case k < 16:
				if err := st.Admin().RebuildIndex(ctx); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				what += "rebuild"
			default:
				continue
			}
			check(what)
		}
		if _, err := st.Admin().OverwriteRedacted(ctx); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := st.Close(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		s := &secrets{parts: map[string][]byte{}}
		for text := range gone {
			s.add(text, []byte(text))
		}
		opened++
		left := slices.DeleteFunc(s.traces(t, storetest.Of(r.Options(opened)).System.FS, dir), func(where string) bool {
			return strings.HasPrefix(where, dir+"/wal/shared at") || strings.HasPrefix(where, dir+"/wal/owner at")
		})
		if len(left) > 0 {
			t.Fatalf("seed %d: %s", seed, left[0])
		}
	}
}

// An undo does not restore a redacted version, whether or not its bytes are overwritten yet, nor a
// purged one.
func TestUndoOfARedactedVersion(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st := openLasting(t, t.TempDir()+"/s")
	var versions []uint64
	for _, content := range []string{told, "harmless"} {
		m, err := st.Put(ctx, varve.Memory{ID: "note", Content: content})
		fixture.Must(t, err)
		versions = append(versions, m.Version)
	}
	_, err := st.Admin().PurgeVersion(ctx, "note", versions[0])
	fixture.Must(t, err)
	for _, when := range []string{"redacted", "overwritten"} {
		_, err := st.Undo(ctx, varve.UndoOptions{Position: versions[1]})
		var conflicts *varve.UndoError
		if !errors.As(err, &conflicts) || len(conflicts.Plan.Conflicts) != 1 ||
			!errors.Is(conflicts.Plan.Conflicts[0].Err, varve.ErrRedacted) {
			t.Errorf("%s: %v", when, err)
		}
		_, err = st.Admin().OverwriteRedacted(ctx)
		fixture.Must(t, err)
	}
	if m, err := st.Get(ctx, "note"); err != nil || m.Content != "harmless" {
		t.Error(m.Content, err)
	}
}

// A redaction reports the versions that have the same text but differ in their times, and says what to
// do about the memory's present version.
func TestRedactEqualTexts(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st := openLasting(t, filepath.Join(t.TempDir(), "s"))
	var versions []uint64
	for i, content := range []string{told, "clean", told + "\n", "clean again", told} {
		m, err := st.Put(ctx, varve.Memory{ID: "note", Content: content, Metadata: map[string]any{"n": i}})
		fixture.Must(t, err)
		versions = append(versions, m.Version)
	}
	if _, err := st.Admin().PurgeVersion(ctx, "note", versions[4]); !errors.Is(err, varve.ErrConflict) ||
		strings.Contains(err.Error(), "meanwhile") {
		t.Error(err)
	}
	for i, want := range [][]uint64{0: {versions[2], versions[4]}, 1: nil, 2: {versions[4]}} {
		r, err := st.Admin().PurgeVersion(ctx, "note", versions[i])
		fixture.Must(t, err)
		if !slices.Equal(r.Equal, want) {
			t.Errorf("version %d: the same text have %v, want %v", i, r.Equal, want)
		}
	}
	fixture.Must(t, st.Close())
}
