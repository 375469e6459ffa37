package backups

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
)

// everyKind makes a store with documents of every kind, and returns its folder.
func everyKind(t *testing.T, memories int) (dir string, st *varve.Store) {
	t.Helper()
	ctx := context.Background()
	dir = filepath.Join(t.TempDir(), "s")
	st = fixture.Open(t, dir, &varve.Options{NoBackground: true, Writer: &varve.Writer{Agent: "packer"}})
	for part := range slices.Chunk(slices.Collect(numbers(memories)), 500) {
		b := new(varve.Batch)
		for _, i := range part {
			b.Put(varve.Memory{ID: fmt.Sprint("k", i), Content: fmt.Sprint(i, strings.Repeat(" text", i%50)),
				Embedding: []float32{float32(i), 1}})
		}
		if err := st.Apply(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "a", Name: "a", MemoryIDs: []string{"k1"}}); err != nil {
		t.Fatal(err)
	}
	for i, path := range []string{"a.md", "deep/er/b.md", "deep/empty.md"} {
		if _, err := st.Notes().Write(ctx, path, []byte(strings.Repeat("note ", 3*i%4))); err != nil {
			t.Fatal(err)
		}
	}
	return dir, st
}

func numbers(n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// files returns the documents of a store by path.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, folder := range []string{"memories", "assemblies", "notes", "working"} {
		err := filepath.WalkDir(filepath.Join(dir, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			rel, _ := filepath.Rel(dir, path)
			all[rel] = string(b)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return all
}

// TestPackedAsFolder verifies that the packed form restores what the folder does: the same documents, byte for byte,
// of every kind, and that both say the same of themselves.
func TestPackedAsFolder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, st := everyKind(t, 1200)
	above := filepath.Dir(dir)
	var infos [3]varve.BackupInfo
	var out bytes.Buffer
	var err error
	for i, o := range []varve.BackupOptions{{}, {Packed: true}, {Output: &out}} {
		at := filepath.Join(above, fmt.Sprint("b", i))
		if o.Output != nil {
			at = ""
		}
		if infos[i], err = st.Backup(ctx, at, o); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(above, "b2"), out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	want := filesOf(t, dir)
	if len(want) < 1204 {
		t.Fatal(len(want), "documents")
	}
	for i, info := range infos {
		at, to := filepath.Join(above, fmt.Sprint("b", i)), filepath.Join(above, fmt.Sprint("r", i))
		if info.List != infos[0].List || info.Writers != infos[0].Writers || info.Writers == "" ||
			info.Bytes != infos[0].Bytes || info.Memories != 1200 {
			t.Errorf("%+v, the folder %+v", info, infos[0])
		}
		if again, err := varve.CheckBackup(ctx, at); err != nil || again.Sum != info.Sum {
			t.Fatal(again, err)
		}
		r, err := varve.Restore(ctx, at, to, nil)
		if err != nil || r.Memories != 1200 || r.Assemblies != 1 || len(r.Damage) > 0 {
			t.Fatal(r, err)
		}
		if got := filesOf(t, to); !maps.Equal(got, want) {
			t.Errorf("form %d: the documents differ", i)
		}
		re := fixture.Open(t, to, nil)
		for v, err := range re.History(ctx, "k7") {
			if err != nil || v.Writer.Agent != "packer" {
				t.Errorf("form %d: %+v, %v", i, v, err)
			}
		}
	}
	folder, err := os.Stat(filepath.Join(above, "b1"))
	if err != nil || folder.Mode() != 0o600 {
		t.Error(folder.Mode(), err)
	}
	if folder.Size() > infos[0].Bytes/2 {
		t.Errorf("%d bytes for documents of %d", folder.Size(), infos[0].Bytes)
	}
	if left, _ := filepath.Glob(filepath.Join(above, "*.partial*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestPackedRefused verifies that nothing is overwritten, and that what is no backup is refused.
func TestPackedRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, st := everyKind(t, 3)
	above := filepath.Dir(dir)
	file, empty := filepath.Join(above, "file"), filepath.Join(above, "empty")
	if err := errors.Join(os.WriteFile(file, []byte("mine"), 0o600), os.Mkdir(empty, 0o700)); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(above, "link")
	if err := os.Symlink(filepath.Join(above, "nowhere"), link); err != nil {
		t.Skip(err)
	}
	packed := varve.BackupOptions{Packed: true}
	for _, at := range []string{file, empty, link, filepath.Join(dir, "memories", "x")} {
		if _, err := st.Backup(ctx, at, packed); !errors.Is(err, varve.ErrInvalid) {
			t.Errorf("%s: %v", at, err)
		}
	}
	if b, _ := os.ReadFile(file); string(b) != "mine" {
		t.Errorf("the file has %q", b)
	}
	if _, err := st.Backup(ctx, file, varve.BackupOptions{Output: io.Discard}); !errors.Is(err, varve.ErrInvalid) {
		t.Error(err)
	}
	seal := func(w io.Writer) (io.WriteCloser, error) { return nil, errors.New("no key") }
	if _, err := st.Backup(ctx, filepath.Join(above, "f"), varve.BackupOptions{Seal: seal}); !errors.Is(err,
		varve.ErrInvalid) {
		t.Errorf("a folder was sealed: %v", err)
	}
	if _, err := st.Backup(ctx, filepath.Join(above, "f"), varve.BackupOptions{Packed: true, Seal: seal}); err == nil ||
		!strings.Contains(err.Error(), "no key") {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(above, "f")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a backup that could not be sealed exists")
	}
	if _, err := varve.Restore(ctx, file, filepath.Join(above, "r"), nil); !errors.Is(err, varve.ErrNoStore) {
		t.Error(err)
	}
	if _, err := varve.CheckBackup(ctx, file); !errors.Is(err, varve.ErrNoStore) {
		t.Error(err)
	}
	backups := filepath.Join(dir, "backups")
	if err := os.MkdirAll(backups, 0o700); err != nil {
		t.Fatal(err)
	}
	info, err := st.Backup(ctx, filepath.Join(backups, "b"), packed)
	if err != nil {
		t.Fatal(err)
	}
	if last := st.Admin().LastBackup(); last.Before(info.Made.Add(-1e9)) {
		t.Errorf("the last backup was made %v, according to the store %v", info.Made, last)
	}
	whole, err := os.ReadFile(filepath.Join(backups, "b"))
	if err != nil {
		t.Fatal(err)
	}
	half, later := filepath.Join(backups, "half"), info.Made.Add(time.Hour)
	for _, size := range []int{len(whole) - 1, len(whole) / 2, 64, 7} {
		if err := errors.Join(os.WriteFile(half, whole[:size], 0o600), os.Chtimes(half, later, later)); err != nil {
			t.Fatal(err)
		}
		if last := st.Admin().LastBackup(); !last.Before(later) {
			t.Errorf("the first %d of %d bytes of a backup count as one", size, len(whole))
		}
	}
	if left, _ := filepath.Glob(filepath.Join(above, "*.partial*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestPackedDamaged verifies that a wrong byte or a cut anywhere is found, and that a restore has no wrong document,
// and with the store all of them.
func TestPackedDamaged(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := context.Background()
	dir, st := everyKind(t, 300)
	above := filepath.Dir(dir)
	whole := filepath.Join(above, "b")
	if _, err := st.Backup(ctx, whole, varve.BackupOptions{Packed: true}); err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	want := filesOf(t, dir)
	seed := storetest.Seed(t, ".")
	r := rand.New(rand.NewPCG(seed, 0))
	healed := 0
	for n := range 24 {
		b := slices.Clone(sound)
		at := r.IntN(len(b))
		what := fmt.Sprintf("a wrong byte at %d of %d", at, len(b))
		if n%4 == 3 {
			b, what = b[:at], fmt.Sprintf("cut to %d of %d bytes", at, len(b))
		} else {
			b[at] ^= byte(1 + r.IntN(255))
		}
		file := filepath.Join(above, fmt.Sprint("d", n))
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := varve.CheckBackup(ctx, file); !errors.Is(err, varve.ErrCorrupt) && !errors.Is(err, varve.ErrNoStore) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := varve.Restore(ctx, file, file+"s", &varve.RestoreOptions{Strict: true}); err == nil {
			t.Errorf("%s: restored as if it were sound", what)
		}
		if _, err := varve.Restore(ctx, file, file+"r", nil); err == nil {
			for name, text := range filesOf(t, file+"r") {
				if want[name] != text {
					t.Errorf("%s: %s differs", what, name)
				}
			}
		}
		report, err := varve.Restore(ctx, file, file+"l", &varve.RestoreOptions{Log: dir})
		if err != nil {
			t.Logf("%s: %v", what, err)
			continue
		}
		healed++
		if len(report.Damage) == 0 {
			t.Errorf("%s: restored without a word", what)
		}
		if got := filesOf(t, file+"l"); !maps.Equal(got, want) {
			t.Errorf("%s: %d documents of %d came back, with the store at hand: %+v", what, len(got), len(want), report.Damage)
		}
	}
	if healed < 6 {
		t.Errorf("%d of 24 restored", healed)
	}
}

// TestPackedDiskFull verifies that a full disk below the output ends the backup with its error.
func TestPackedDiskFull(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, st := everyKind(t, 300)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full:", err)
	}
	defer full.Close()
	if _, err := st.Backup(ctx, "", varve.BackupOptions{Output: full}); !errors.Is(err, varve.ErrDiskFull) {
		t.Error(err)
	}
}
