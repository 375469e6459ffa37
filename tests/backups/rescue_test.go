package backups

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/working"
)

var rescueSeed = flag.Uint64("rescue.seed", 0, "replay TestBackupRescue with this seed")

// rescued makes a store with documents of every kind, and a backup of it.
func rescued(t *testing.T) (store, backup string, o *varve.Options) {
	t.Helper()
	ctx := context.Background()
	dir := t.TempDir()
	store, backup = filepath.Join(dir, "s"), filepath.Join(dir, "b")
	o = &varve.Options{NoBackground: true, SegmentSize: 64 << 10}
	st := fixture.Open(t, store, o)
	for round := range 3 {
		for i := range 12 {
			if round > 0 && i%3 != 0 {
				continue
			}
			m := varve.Memory{ID: fmt.Sprint("k", i),
				Content:   fmt.Sprintf("memory %d of round %d %s", i, round, strings.Repeat("words ", 20)),
				Embedding: []float32{1, float32(i + 1), float32(round)}}
			if _, err := st.Put(ctx, m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "huge", Content: strings.Repeat("huge ", 6000)}); err != nil {
		t.Fatal(err)
	}
	fixture.Group(t, st, "a", "k1", "k2")
	fixture.Group(t, st, "b", "k3")
	if err := st.Delete(ctx, "k11"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		w, err := st.Working().Open(ctx, working.Scope{Session: fmt.Sprint("s", i)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Set(ctx, "task", fmt.Sprint("rescue ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.Backup(ctx, backup, varve.BackupOptions{Progress: func(done, _ int64) {
		if done == 0 { // the log has newer versions than the files
			for i := range 4 {
				if _, err := st.Put(ctx,
					varve.Memory{ID: fmt.Sprint("k", i), Content: fmt.Sprint("beside the backup ", i),
						Embedding: []float32{1, 2, 3}}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return store, backup, o
}

// documentsIn returns the files of a store, or of a backup.
func documentsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, folder := range []string{"memories", "assemblies", "working"} {
		names, err := filepath.Glob(filepath.Join(dir, folder, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[folder+"/"+filepath.Base(name)] = string(b)
		}
	}
	return all
}

// FAILURES 106: one flipped bit, or a file that is truncated or missing, anywhere in a backup, loses at
// most one document; nothing is restored that was not backed up, and the damage is named.
func TestBackupRescue(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	seed := proofs.Seed(t, *rescueSeed)
	rng := rand.New(rand.NewPCG(seed, 106))
	store, backup, o := rescued(t)
	dir := t.TempDir()
	n := 0
	restore := func(ro varve.RestoreOptions) (varve.RestoreReport, map[string]string, error) {
		n++
		to := filepath.Join(dir, fmt.Sprint("r", n))
		ro.Options = o
		r, err := varve.Restore(ctx, backup, to, &ro)
		if left, _ := filepath.Glob(to + "*"); err != nil && len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if err != nil {
			return r, nil, err
		}
		st := fixture.Open(t, to, o)
		for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
			if err != nil || f.Severity != varve.SeverityInfo {
				t.Errorf("the restored store: %v, %v", f, err)
			}
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		docs := documentsIn(t, to)
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		return r, docs, nil
	}
	sound, want, err := restore(varve.RestoreOptions{})
	if err != nil || len(sound.Damage) > 0 || len(want) < 15 {
		t.Fatal(sound, len(want), err)
	}
	// After a hole of the log a document is as in the backup's file, or as in an older entry.
	copied, content := documentsIn(t, backup),
		regexp.MustCompile(`"content": "(memory \d+ of round \d |beside the backup \d+|huge )`)
	older := func(name, text string) bool {
		return text == copied[name] || content.MatchString(text) && strings.Contains(text,
			strings.TrimSuffix(filepath.Base(name), ".json"))
	}
	var files []string
	if err := filepath.WalkDir(backup, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	lost, healed, refused := 0, 0, 0
	for _, name := range files {
		rel, err := filepath.Rel(backup, name)
		if err != nil {
			t.Fatal(err)
		}
		rel = filepath.ToSlash(rel)
		was, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		damages := map[string]func(b []byte) []byte{
			"cut":     func(b []byte) []byte { return b[:rng.IntN(len(b))] },
			"removed": nil,
			"zeros":   func(b []byte) []byte { at := rng.IntN(len(b)); clear(b[at:min(at+16, len(b))]); return b },
		}
		for i := range 3 {
			damages[fmt.Sprint("bit ", i)] = func(b []byte) []byte { b[rng.IntN(len(b))] ^= 1 << rng.IntN(8); return b }
		}
		for _, what := range slices.Sorted(maps.Keys(damages)) {
			if damages[what] == nil {
				err = os.Remove(name)
			} else {
				b := damages[what](bytes.Clone(was))
				if bytes.Equal(b, was) {
					continue
				}
				err = os.WriteFile(name, b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			at := fmt.Sprintf("%s, %s", rel, what)
			_, cerr := varve.CheckBackup(ctx, backup)
			r, got, err := restore(varve.RestoreOptions{})
			if rel == "backup.json" && !strings.HasPrefix(what, "bit") { // nothing else says of which store it is a backup
				if !errors.Is(err, varve.ErrCorrupt) && !errors.Is(err, varve.ErrNoStore) {
					t.Errorf("%s: %v", at, err)
				}
				refused++
				if err := os.WriteFile(name, was, 0o600); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", at, err)
			}
			log := strings.HasPrefix(rel, "wal/")
			gone := 0
			for name, text := range want {
				if got[name] != text {
					if gone++; got[name] != "" && !(log && older(name, got[name])) {
						t.Errorf("%s: %s has other bytes", at, name)
					}
				}
			}
			if more := len(got) + gone - len(want); err == nil && !log && more != 0 {
				t.Errorf("%s: %d more documents", at, more)
			}
			named := slices.ContainsFunc(r.Damage,
				func(d varve.Damage) bool { return d.Path == rel || strings.HasPrefix(rel, d.Path+"/") })
			missing := slices.ContainsFunc(r.Damage, func(d varve.Damage) bool { return d.Missing })
			if err == nil && (!log && gone > 1 || log && gone > 0 && strings.HasPrefix(what, "bit") ||
				!named && cerr != nil && (gone > 0 || strings.HasSuffix(rel, ".sha256")) || gone > 0 && !missing) {
				t.Errorf("%s: %d are lost; check: %v; %v", at, gone, cerr, r.Damage)
			}
			if _, _, err := restore(varve.RestoreOptions{Strict: true}); err == nil && gone > 0 {
				t.Errorf("%s: restored with Strict", at)
			}
			if lost += gone; gone > 0 { // the store has it
				if r, got, err := restore(varve.RestoreOptions{Log: store}); err != nil || !maps.Equal(got, want) {
					t.Errorf("%s: with the store's log: %v, %v", at, err, r.Damage)
				}
			} else if len(r.Damage) > 0 {
				healed++
			}
			if err := os.WriteFile(name, was, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%d restores: %d documents lost, %d times all was healed, %d times refused", n, lost, healed, refused)
	if lost == 0 || healed == 0 {
		t.Error("the damage was not of every kind")
	}
}

// A backup of which nothing can be restored is refused, and leaves nothing behind.
func TestBackupNothingLeft(t *testing.T) {
	t.Parallel()
	_, backup, o := rescued(t)
	if err := filepath.WalkDir(backup, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != "backup.json" {
			err = os.WriteFile(path, bytes.Repeat([]byte{0xff}, 4000), 0o600)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	_, err := varve.CheckBackup(t.Context(), backup)
	if faults, ok := err.(interface{ Unwrap() []error }); !ok || len(faults.Unwrap()) < 2 || !errors.Is(err,
		varve.ErrCorrupt) {
		t.Errorf("the check names %v", err)
	}
	to := filepath.Join(t.TempDir(), "r")
	r, err := varve.Restore(t.Context(), backup, to, &varve.RestoreOptions{Options: o})
	if !errors.Is(err, varve.ErrCorrupt) || !strings.Contains(err.Error(), "nothing in") {
		t.Errorf("restored %v, %v", r, err)
	}
	if left, _ := filepath.Glob(to + "*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
