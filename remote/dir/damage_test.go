package dir_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/dir"
	"github.com/varve-db/varve/remote/remotetest"
)

func create(t *testing.T, folder string) remote.Remote {
	t.Helper()
	r, err := dir.Create(t.Context(), folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// begun creates a remote with the pieces of a log.
func begun(t *testing.T, folder string, pieces int) (remote.Remote, *remotetest.Log) {
	t.Helper()
	r, l := create(t, folder), remotetest.NewLog(1).Grow(pieces, 1)
	if _, err := r.Begin(t.Context(), l.Anchor(t, remote.Position{})); err != nil {
		t.Fatal(err)
	}
	remotetest.Append(t, r, l.Pieces...)
	return r, l
}

func entry(folder string, number string) string {
	return filepath.Join(folder, "log", "0000000000000", "0000000000000"+number)
}

// An entry that is flipped, cut, longer, missing, empty or another one is damage at its place. What is read before and
// after it is right, and a new epoch leads out.
func TestDamagedEntry(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "copy")
	r, l := begun(t, folder, 6)
	read := func(want int) (damaged int) { // number of the entry that is damaged; 0: none
		at := 0
		for p, err := range r.Read(t.Context(), 1, l.Start.LSN) {
			switch {
			case errors.Is(err, errs.ErrCorrupt):
				damaged++
				at++
			case err != nil:
				t.Fatal(err)
			case p.From != l.Pieces[at].From || !bytes.Equal(p.Bytes, l.Pieces[at].Bytes):
				t.Fatalf("piece %d has other bytes", at)
			default:
				at++
			}
		}
		if at != want {
			t.Fatalf("read %d pieces, with damaged ones, want %d", at, want)
		}
		return damaged
	}
	for _, number := range []string{"004", "007"} { // in the middle; the newest
		name := entry(folder, number)
		good, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		other, err := os.ReadFile(entry(folder, "003"))
		if err != nil {
			t.Fatal(err)
		}
		var bad [][]byte
		for i := 0; i < len(good); i += 1 + i/300*(len(good)/100) {
			b := bytes.Clone(good)
			b[i] ^= 1 << (i % 8)
			bad = append(bad, b)
		}
		bad = append(bad, nil, good[:100], good[:264], good[:len(good)-1], append(bytes.Clone(good), 0), other)
		for i, b := range bad {
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			damaged := read(6)
			if number == "004" && damaged != 1 || damaged == 0 {
				t.Fatalf("%s, case %d: %d damaged pieces", number, i, damaged)
			}
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if number == "004" && read(6) != 1 {
			t.Fatal("a missing entry was not noticed")
		}
		if err := os.WriteFile(name, good, 0o600); err != nil {
			t.Fatal(err)
		}
		remotetest.Compare(t, r, 1, l.Start.LSN, l.Pieces)
	}
	// A damaged piece before the one that is wanted is of no interest.
	if err := os.WriteFile(entry(folder, "004"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	remotetest.Compare(t, r, 1, l.Pieces[3].From.LSN, l.Pieces[3:])
	// The newest entry is damaged: nothing can follow it but an epoch.
	if err := os.WriteFile(entry(folder, "007"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := r.Head(t.Context())
	if !errors.Is(err, errs.ErrCorrupt) || h.Number != 7 {
		t.Fatal(h, err)
	}
	next := remotetest.NewLog(2)
	if err := r.Append(t.Context(), &next.Grow(1, 1).Pieces[0]); !errors.Is(err, errs.ErrCorrupt) {
		t.Fatal(err)
	}
	next = remotetest.NewLog(2)
	epoch, err := r.Begin(t.Context(), next.Anchor(t, h))
	if err != nil || epoch < 2 {
		t.Fatal(epoch, err)
	}
	next.Grow(3, epoch)
	remotetest.Append(t, r, next.Pieces...)
	remotetest.Compare(t, r, epoch, next.Start.LSN, next.Pieces)
	if list, err := r.Epochs(t.Context()); err != nil || len(list) != 2 || list[0].To != l.Pieces[4].To {
		t.Fatal(list, err)
	}
	if n, err := r.Prune(t.Context(), epoch, 0); err != nil || n != 6 { // the damaged one may belong to the new epoch
		t.Fatal(n, err)
	}
	remotetest.Compare(t, r, epoch, next.Start.LSN, next.Pieces)
}

// A writer sleeps between its look at the newest entry and its rename. Meanwhile others add entries and prune those
// that follow what it has seen, so that its name is free.
func TestSleeperBeforeRename(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "copy")
	awake, l := begun(t, folder, 1)
	l.Grow(6, 1)
	for _, anchor := range []bool{false, true} {
		slept := false
		sleeper, err := dir.Open(t.Context(), folder, &dir.Options{FS: wrap.New(vfs.OS(),
			func(op *wrap.Op, call func() error) error {
				if op.Kind == wrap.RenameNew && !slept {
					slept = true
					remotetest.Append(t, awake, l.Pieces[1:]...)
					if _, err := awake.Prune(t.Context(), 1, l.Pieces[4].To.LSN); err != nil {
						t.Error(err)
					}
				}
				return call()
			})})
		if err != nil {
			t.Fatal(err)
		}
		if anchor {
			l.Grow(6, 1)
			early := remotetest.Head(t, awake)
			l.Pieces = l.Pieces[len(l.Pieces)-7:]
			_, err = sleeper.Begin(t.Context(), l.Anchor(t, early))
		} else {
			err = sleeper.Append(t.Context(), &l.Pieces[1])
		}
		var moved *remote.MovedError
		if !errors.As(err, &moved) || moved.Head.At != l.End || !slept {
			t.Fatalf("the sleeper's entry: %v", err)
		}
		if names, err := os.ReadDir(filepath.Dir(entry(folder, "001"))); err != nil || len(names) > 4 {
			t.Errorf("the sleeper's file is left: %v, %v", names, err)
		}
		remotetest.Compare(t, awake, 1, l.Pieces[6].From.LSN, l.Pieces[6:])
	}
}

// A reader has asked for the newest entry when others are added and everything up to that one is pruned: it is told.
func TestReadBesidePrune(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "copy")
	awake, l := begun(t, folder, 3)
	l.Grow(4, 1)
	slept := false
	reader, err := dir.Open(t.Context(), folder, &dir.Options{FS: wrap.New(vfs.OS(),
		func(op *wrap.Op, call func() error) error {
			err := call()
			if op.Kind == wrap.SyncDir && !slept { // the newest entry was found
				slept = true
				remotetest.Append(t, awake, l.Pieces[3:]...)
				if _, err := awake.Prune(t.Context(), 1, l.Pieces[4].To.LSN); err != nil {
					t.Error(err)
				}
			}
			return err
		})})
	if err != nil {
		t.Fatal(err)
	}
	truncated := false
	for p, err := range reader.Read(t.Context(), 1, l.Start.LSN) {
		if truncated = errors.Is(err, errs.ErrTruncated); !truncated {
			t.Errorf("piece from %v, %v", p.From, err)
		}
	}
	if !truncated || !slept {
		t.Error("reading what was pruned is no error")
	}
}

// Entries that were removed by hand at the end are noticed where others are below them, and a newer format is refused.
func TestDamagedFolder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "copy")
	r, l := begun(t, folder, 6)
	if _, err := r.Prune(t.Context(), 1, l.Pieces[3].To.LSN); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(entry(folder, "007"))
	if err != nil {
		t.Fatal(err)
	}
	b[8] = 2
	sum := sha256.Sum256(b[:232])
	copy(b[232:], sum[:])
	if err := os.WriteFile(entry(folder, "007"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	var newer *errs.NewerError
	if _, err := r.Head(t.Context()); !errors.As(err, &newer) || newer.Format != 2 || newer.Path == "" {
		t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(folder, "log", "0000000000000")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Head(t.Context()); !errors.Is(err, errs.ErrCorrupt) || !errors.Is(err, fs.ErrNotExist) {
		t.Error("all entries are gone:", err)
	}
}

func TestDamagedSnapshot(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "copy")
	r, l := begun(t, folder, 3)
	var ids []uuid.UUID
	for range 2 {
		s := remote.Snapshot{ID: remotetest.NewID(t), Geometry: l.Geometry, Epoch: 1, Begin: l.Start, End: l.End,
			Time: time.Unix(1, 0)}
		if err := r.Save(t.Context(), &s, strings.NewReader("abc")); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	name := filepath.Join(folder, "snapshots", ids[0].String()+".meta")
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 0x10
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := r.Snapshots(t.Context())
		if len(list) != 1 || list[0].ID != ids[1] || !errors.Is(err, errs.ErrCorrupt) {
			t.Fatalf("byte %d flipped: %d snapshots, %v", i, len(list), err)
		}
	}
	if err := os.Remove(filepath.Join(folder, "snapshots", ids[1].String()+".body")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Open(t.Context(), ids[1]); !errors.Is(err, errs.ErrCorrupt) || errors.Is(err, errs.ErrNotFound) {
		t.Error("the bytes of a snapshot are missing:", err)
	}
}

// What a killed process has left is removed by a prune two days later.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "copy")
	_, l := begun(t, folder, 3)
	for _, name := range []string{"tmp/" + strings.Repeat("left27", 5)[:26], "snapshots/" + uuid.NewString() + ".body"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	left := func() int {
		one, err := os.ReadDir(filepath.Join(folder, "tmp"))
		two, err2 := os.ReadDir(filepath.Join(folder, "snapshots"))
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		return len(one) + len(two)
	}
	for days, want := range map[int]int{1: 2, 3: 0} {
		r, err := dir.Open(t.Context(), folder, &dir.Options{Clock: func() time.Time {
			return time.Now().Add(time.Duration(days) * 24 * time.Hour)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if days == 1 && left() == 0 {
			continue // the order of a map
		}
		if _, err := r.Prune(t.Context(), 1, l.Start.LSN); err != nil || left() != want {
			t.Errorf("after %d days: %d files left, want %d; %v", days, left(), want, err)
		}
	}
}

// TestFilesOfTheUser: files of the user in tmp/ and snapshots/ are no leftovers, neither when the folder becomes a
// remote nor when it is swept.
func TestFilesOfTheUser(t *testing.T) {
	t.Parallel()
	mine := []string{"tmp/thesis.tex", "tmp/abcdefghijklmnopqrstuvwxyz.txt", "snapshots/disk.body", "snapshots/x"}
	for _, name := range mine {
		folder := t.TempDir()
		path := filepath.Join(folder, name)
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := dir.Create(t.Context(), folder, nil); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if list, err := os.ReadDir(folder); len(list) != 1 {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
	folder := filepath.Join(t.TempDir(), "copy")
	_, l := begun(t, folder, 3)
	for _, name := range mine {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := dir.Open(t.Context(), folder, &dir.Options{Clock: func() time.Time { return time.Now().AddDate(1, 0, 0) }})
	if err == nil {
		_, err = r.Prune(t.Context(), 1, l.Start.LSN)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range mine {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
}

// Folders that are refused: with other content, without the file of a remote, on file systems where two writers win.
func TestRefused(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	used := t.TempDir()
	if err := os.WriteFile(filepath.Join(used, "photo.jpg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Create(t.Context(), used, nil); !errors.Is(err, errs.ErrInvalid) {
		t.Error("a folder with other content:", err)
	}
	for _, name := range []string{t.TempDir(), filepath.Join(used, "missing")} {
		if _, err := dir.Open(t.Context(), name, nil); !errors.Is(err, remote.ErrNoRemote) {
			t.Error("no remote:", err)
		}
		if names, err := os.ReadDir(name); err == nil && len(names) > 0 {
			t.Error("Open created", names)
		}
	}
	folder := filepath.Join(t.TempDir(), "copy")
	one, two := create(t, folder), create(t, folder)
	if one.ID() != two.ID() {
		t.Error("a remote that is created again has another ID")
	}
	if err := os.WriteFile(filepath.Join(folder, "varve-remote.json"), []byte(`{"format":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Open(t.Context(), folder, nil); !errors.Is(err, errs.ErrNewerFormat) {
		t.Error(err)
	}
}

// The disk is replaced, or unmounted, while the remote is open: every call says so, and the other copy stays as it is.
func TestReplacedDisk(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "copy")
	r, l := begun(t, folder, 6)
	away := folder + ".away"
	swap := func(old, new string) {
		t.Helper()
		if err := os.Rename(old, new); err != nil {
			t.Fatal(err)
		}
	}
	swap(folder, away)
	refused := func(when string) {
		t.Helper()
		ctx := t.Context()
		s := remote.Snapshot{ID: remotetest.NewID(t), Geometry: l.Geometry, Epoch: 1, Begin: l.Start, End: l.End,
			Time: time.Unix(1, 0)}
		_, head := r.Head(ctx)
		_, begin := r.Begin(ctx, remotetest.NewLog(2).Anchor(t, remote.Position{Number: 3}))
		_, prune := r.Prune(ctx, 9, 0)
		_, epochs := r.Epochs(ctx)
		_, snapshots := r.Snapshots(ctx)
		_, open := r.Open(ctx, s.ID)
		_, machines := r.Machines(ctx)
		var read error
		for _, read = range r.Read(ctx, 1, l.Start.LSN) {
		}
		for name, err := range map[string]error{"Head": head, "Begin": begin, "Prune": prune, "Epochs": epochs,
			"Snapshots": snapshots, "Open": open, "Machines": machines, "Read": read,
			"Append": r.Append(ctx, &remotetest.NewLog(1).Grow(9, 1).Pieces[6]), "Wait": r.Wait(ctx, 0),
			"Save": r.Save(ctx, &s, strings.NewReader("abc")), "Drop": r.Drop(ctx, s.ID),
			"Register": r.Register(ctx, remote.Machine{ID: uuid.UUID{1}})} {
			if !errors.Is(err, remote.ErrNoRemote) {
				t.Errorf("%s: %s: %v", when, name, err)
			}
		}
	}
	refused("without a disk")
	other, theirs := begun(t, folder, 2)
	refused("another disk")
	remotetest.Compare(t, other, 1, theirs.Start.LSN, theirs.Pieces)
	for _, name := range []string{"snapshots", "machines", "tmp"} {
		if names, err := os.ReadDir(filepath.Join(folder, name)); err != nil || len(names) > 0 {
			t.Error("written to another copy:", names, err)
		}
	}
	swap(folder, folder+".other")
	swap(away, folder)
	remotetest.Compare(t, r, 1, l.Start.LSN, l.Pieces)
}

// No epoch begins after a damaged entry if no other shows whose copy it is.
func TestBeginAfterOnlyDamage(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "copy")
	r, _ := begun(t, folder, 1)
	for _, number := range []string{"002", "001"} {
		if err := os.WriteFile(entry(folder, number), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := remotetest.NewLog(2)
	other.Geometry.UUID = [16]byte{7}
	if _, err := r.Begin(t.Context(), other.Anchor(t, remote.Position{Number: 2})); !errors.Is(err, errs.ErrCorrupt) {
		t.Error("another store has begun an epoch after damage:", err)
	}
}

// replacing is a file system whose exclusive rename looks up the name first, and then replaces it, as some network
// file systems do.
type replacing struct{ vfs.FS }

func (r replacing) RenameNew(old, new string) error {
	if _, err := r.Stat(new); err == nil {
		return &os.LinkError{Op: "rename", Old: old, New: new, Err: fs.ErrExist}
	}
	time.Sleep(time.Millisecond)
	return r.Rename(old, new)
}

func TestProbe(t *testing.T) {
	t.Parallel()
	disk := crash.New()
	random := func() io.Reader { return bytes.NewReader(make([]byte, 1<<20)) }
	for name, fsys := range map[string]vfs.FS{
		"two writers win": replacing{disk.Process("a")},
		"no exclusive rename": wrap.New(disk.Process("b"), func(op *wrap.Op, call func() error) error {
			if op.Kind == wrap.RenameNew {
				return errors.ErrUnsupported
			}
			return call()
		}),
		"no sync of folders": wrap.New(disk.Process("c"), func(op *wrap.Op, call func() error) error {
			if op.Kind == wrap.SyncDir && strings.Contains(op.Path, "/tmp/") {
				return errors.ErrUnsupported
			}
			return call()
		}),
	} {
		_, err := dir.Create(context.Background(), "/"+name, &dir.Options{FS: fsys, Random: random()})
		if !errors.Is(err, remote.ErrUnsuitable) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := fsys.Stat("/" + name + "/varve-remote.json"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the folder has become a remote: %v", name, err)
		}
	}
}
