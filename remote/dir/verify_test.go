package dir_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/remotetest"
)

// dropping is a remote from which a snapshot is dropped after it was listed.
type dropping struct {
	remote.Remote
	id uuid.UUID
}

func (d *dropping) Snapshots(ctx context.Context) ([]remote.Snapshot, error) {
	list, err := d.Remote.Snapshots(ctx)
	return list, errors.Join(err, d.Drop(ctx, d.id))
}

// Verify finds a flipped bit anywhere in entries and snapshots, and tells whether the copy can still be restored.
func TestVerify(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "copy")
	r, l := begun(t, folder, 40)
	verify := func() *remote.Verified {
		t.Helper()
		v, err := remote.Verify(t.Context(), r, true)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := verify(); v.Restorable || len(v.Damage) > 0 || v.Pieces != 40 || v.Epochs != 1 {
		t.Errorf("without a snapshot: %+v", v)
	}
	s := remote.Snapshot{ID: remotetest.NewID(t), Geometry: l.Geometry, Epoch: 1, Begin: l.Pieces[9].From,
		End: l.Pieces[12].To, Time: time.Unix(1, 0)}
	if err := r.Save(t.Context(), &s, strings.NewReader("the bytes")); err != nil {
		t.Fatal(err)
	}
	if v := verify(); !v.Complete || !v.Restorable || len(v.Damage) > 0 || v.Snapshots[0].To != l.End || v.Bytes == 0 {
		t.Errorf("a sound copy: %+v", v)
	}
	if v, err := remote.Verify(t.Context(), r, false); err != nil || !v.Complete || v.Restorable || len(v.Damage) > 0 {
		t.Errorf("a snapshot that was not read is called sound: %+v, %v", v, err)
	}
	for file, restorable := range map[string]bool{
		entry(folder, "005"): true, // before the snapshot
		entry(folder, "011"): false,
		entry(folder, "012"): false,
		entry(folder, "041"): false,
		filepath.Join(folder, "snapshots", s.ID.String()+".body"): false,
		filepath.Join(folder, "snapshots", s.ID.String()+".meta"): false,
	} {
		good, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int{1, len(good) / 2, len(good) - 1} {
			bad := append([]byte(nil), good...)
			bad[at] ^= 1
			if err := os.WriteFile(file, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if v := verify(); len(v.Damage) == 0 || v.Restorable != restorable {
				t.Errorf("%s, byte %d: %d damaged, restorable %v", file, at, len(v.Damage), v.Restorable)
			}
		}
		if err := os.WriteFile(file, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	body := filepath.Join(folder, "snapshots", s.ID.String()+".body")
	if err := os.Rename(body, folder+".body"); err != nil {
		t.Fatal(err)
	}
	if v := verify(); v.Restorable || len(v.Damage) == 0 {
		t.Errorf("the bytes of the snapshot are missing: %+v", v)
	}
	if err := os.Rename(folder+".body", body); err != nil {
		t.Fatal(err)
	}
	v, err := remote.Verify(t.Context(), &dropping{r, s.ID}, true)
	if err != nil || v.Restorable || len(v.Damage) > 0 || len(v.Snapshots) > 0 {
		t.Errorf("a snapshot that is dropped meanwhile: %+v, %v", v, err)
	}
	s.ID, s.Begin.Sum = remotetest.NewID(t), s.Begin.Sum+1
	if err := r.Save(t.Context(), &s, strings.NewReader("the bytes")); err != nil {
		t.Fatal(err)
	}
	if v := verify(); v.Restorable || len(v.Snapshots) != 1 || v.Snapshots[0].To.LSN != 0 {
		t.Errorf("a snapshot of another string: %+v", v)
	}
	if err := r.Drop(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	s.ID, s.Begin = remotetest.NewID(t), l.Pieces[9].From
	if err := r.Save(t.Context(), &s, strings.NewReader("the bytes")); err != nil {
		t.Fatal(err)
	}
	next := remotetest.NewLog(2)
	epoch, err := r.Begin(t.Context(), next.Anchor(t, remotetest.Head(t, r)))
	if err != nil {
		t.Fatal(err)
	}
	remotetest.Append(t, r, next.Grow(3, epoch).Pieces...)
	if v := verify(); v.Restorable || len(v.Damage) > 0 || v.Epochs != 2 || v.Snapshots[0].To != l.End {
		t.Errorf("after an epoch without a snapshot: %+v", v)
	}
}
