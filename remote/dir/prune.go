package dir

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// leftAfter is the age above which a temporary file, or the bytes of a snapshot without a description, count as left
// by a killed process. If the process is in fact alive and only slow, its write fails, because the file was removed.
const leftAfter = 48 * time.Hour

// Prune removes the oldest entries; see remote.Remote. It also removes what killed processes have left.
func (r *Remote) Prune(ctx context.Context, epoch uint64, pos segment.LSN) (removed int, err error) {
	newest, err := r.head(ctx)
	if err != nil {
		return 0, err
	}
	old, err := r.floor()
	if err != nil {
		return 0, err
	}
	floor := old
	if last := newest.position.Number; last > old {
		floor, err = r.search(ctx, old, last, func(h *head) bool {
			return h.position.Epoch > epoch || h.position.Epoch == epoch && h.position.At.LSN > pos
		})
		if err != nil {
			return 0, err
		}
	}
	if floor > old {
		if err := r.raiseFloor(ctx, floor); err != nil {
			return 0, err
		}
	}
	if removed, err = r.removeBelow(ctx, floor); err != nil {
		return removed, err
	}
	return removed, r.sweep(ctx)
}

// raiseFloor durably records that entries whose numbers are below floor are not kept.
func (r *Remote) raiseFloor(ctx context.Context, floor uint64) error {
	if err := r.add(ctx, nil, r.path("floors", nameOf(floor))); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return vfs.Failed("syncing", r.path("floors"), r.o.FS.SyncDir(r.path("floors")))
}

// removeBelow removes the entries whose numbers are below floor, from the lowest to the highest, and the records of
// lower floors. The record of this floor must be durable already. removed is the number of entries that it has
// removed.
func (r *Remote) removeBelow(ctx context.Context, floor uint64) (removed int, err error) {
	folders, err := r.o.FS.ReadDir(r.path("log"))
	if err != nil {
		return 0, vfs.Failed("reading", r.path("log"), err)
	}
	slices.Sort(folders)
	for _, folder := range folders {
		n, ok := parseName(folder, 13)
		if !ok || n*perFolder >= floor {
			continue
		}
		names, err := r.o.FS.ReadDir(r.path("log", folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, vfs.Failed("reading", r.path("log", folder), err)
		}
		slices.Sort(names)
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return removed, err
			}
			if n, ok := parseName(name, 16); !ok || n >= floor {
				continue
			}
			switch err := r.o.FS.Remove(r.path("log", folder, name)); {
			case err == nil:
				removed++
			case !errors.Is(err, fs.ErrNotExist):
				return removed, vfs.Failed("removing", r.path("log", folder, name), err)
			}
		}
		if (n+1)*perFolder <= floor {
			_ = r.o.FS.Remove(r.path("log", folder)) // only if it is empty
		}
	}
	names, err := r.o.FS.ReadDir(r.path("floors"))
	if err != nil {
		return removed, vfs.Failed("reading", r.path("floors"), err)
	}
	for _, name := range names {
		if n, ok := parseName(name, 16); ok && n < floor {
			if err := r.o.FS.Remove(r.path("floors", name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return removed, vfs.Failed("removing", r.path("floors", name), err)
			}
		}
	}
	return removed, nil
}

// sweep removes what killed processes have left: old temporary files, and bytes of snapshots without a description. It
// does not touch files with other names.
func (r *Remote) sweep(ctx context.Context) error {
	old := r.o.Clock().Add(-leftAfter)
	for _, folder := range []string{"tmp", "snapshots"} {
		names, err := r.o.FS.ReadDir(r.path(folder))
		if err != nil {
			return vfs.Failed("reading", r.path(folder), err)
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			path := r.path(folder, name)
			ours := isTemporary(name)
			if folder == "snapshots" {
				text, body := strings.CutSuffix(name, ".body")
				id, err := uuid.Parse(text)
				ours = body && err == nil && text == id.String() && !slices.Contains(names, text+".meta")
			}
			if !ours {
				continue
			}
			st, err := r.o.FS.Stat(path)
			if err != nil || !st.Mode.IsRegular() || st.Mtime.After(old) {
				continue
			}
			if err := r.o.FS.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return vfs.Failed("removing", path, err)
			}
		}
	}
	return nil
}
