package offsite

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/copy/pack"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote/sender"
	"github.com/varve-db/varve/wal/past"
)

// small are the files of a store that are opened under flush.lock, in the order in which a snapshot has them.
var small = []string{"config.json", ".gitignore", index.BaseName, index.DeltaName, "wal/ended", "wal/writers",
	"wal/purges", "wal/purged-texts", "wal/expiry", "wal/aged", places.Computed}

// checkpointName is the name of the checkpoint, the first file of a snapshot.
const checkpointName = "checkpoint"

// valid returns an error for a name that no snapshot has.
func valid(name string) error {
	if name == checkpointName || slices.Contains(small, name) {
		return nil
	}
	folder, _, ok := strings.Cut(name, "/")
	if ok && places.IsDocuments(folder) && path.Clean(name) == name && !strings.Contains(name, `\`) {
		return places.Local(name)
	}
	return fmt.Errorf("%w: no file in a snapshot can have this name", errs.ErrInvalid)
}

// Snapshot begins a snapshot. A goroutine makes the snapshot while the caller reads it.
func (s *Source) Snapshot(ctx context.Context) (sender.Snapshot, error) {
	if err := damaged(s.s.Log); err != nil {
		return nil, err
	}
	o, err := s.open(ctx, append([]string{checkpointName}, small...))
	if err != nil {
		return nil, err
	}
	begin, err := s.base(ctx, &o.checkpoint)
	if err != nil {
		return nil, errors.Join(err, o.close())
	}
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(ctx)
	snap := &snapshot{PipeReader: r, begin: begin, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(snap.done)
		defer w.CloseWithError(errNotMade) // unless it was closed: a panic must not leave the reader waiting
		end, err := s.write(ctx, w, o)
		err = errors.Join(err, o.close())
		snap.end = end
		if err == nil {
			_ = w.Close()
		} else {
			_ = w.CloseWithError(err)
		}
	}()
	return snap, nil
}

// errNotMade reports that the goroutine that makes a snapshot has ended early.
var errNotMade = errors.New("the snapshot is incomplete: the goroutine that makes the snapshot ended early")

type snapshot struct {
	*io.PipeReader
	begin, end past.Mark
	cancel     context.CancelFunc
	done       chan struct{}
}

// Begin returns the mark from which the log is needed to complete the snapshot.
func (s *snapshot) Begin() past.Mark { return s.begin }

// End blocks until the snapshot is complete, and returns the mark at its end. No moment before that mark can be
// restored from the snapshot.
func (s *snapshot) End() past.Mark {
	<-s.done
	return s.end
}

// Close ends a snapshot that was not read to its end.
func (s *snapshot) Close() error {
	s.cancel()
	err := s.PipeReader.Close()
	<-s.done
	return err
}

// write writes a snapshot, and returns its end.
func (s *Source) write(ctx context.Context, out io.Writer, o *opened) (end past.Mark, err error) {
	h := pack.Header{Store: s.s.Log.UUID(), LSN: o.checkpoint.Spilled.LSN, Chain: o.checkpoint.Spilled.Sum}
	w, err := pack.NewWriter(out, h, 1, valid)
	if err != nil {
		return end, err
	}
	defer func() {
		if err != nil {
			w.Abort()
		}
	}()
	for _, f := range o.files {
		if err := add(ctx, w, &f); err != nil {
			return end, err
		}
	}
	if err := s.s.CatchUp(ctx); err != nil {
		return end, err
	}
	for _, d := range s.s.Documents {
		if err := documents(ctx, w, d.Kind, d.IDs(ctx), d.Read); err != nil {
			return end, err
		}
	}
	if err := documents(ctx, w, kind.Scopes, s.s.ScopeKeys(ctx), s.s.ReadScope); err != nil {
		return end, err
	}
	if err := s.s.CatchUp(ctx); err != nil {
		return end, err
	}
	end = s.s.Log.AppliedMark()
	return end, w.Close()
}

// add writes the file f of the store into the packed snapshot w.
func add(ctx context.Context, w *pack.Writer, f *file) error {
	if f.f == nil {
		return w.Add(f.name, ' ', f.info.Mtime, f.bytes, sha256.Sum256(f.bytes))
	}
	to, err := w.Create(f.name, ' ', f.info.Mtime)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, vfs.Until(ctx, io.NewSectionReader(f.f, 0, f.info.Size))); err != nil {
		to.Drop()
		return fmt.Errorf("copying %s: %w", f.name, err)
	}
	_, _, err = to.Commit()
	return err
}

// documents copies the documents of a kind. It omits a document that was deleted meanwhile, because the log has the
// deletion. A document that is damaged or missing, and of which the store has no other copy, is an error: a clone of
// this snapshot would lack the document, and a clone of an earlier snapshot may have it.
func documents(ctx context.Context, w *pack.Writer, k *kind.Kind, ids iter.Seq2[string, error],
	read func(context.Context, string) (backup.Document, error)) error {
	for id, err := range ids {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		d, err := read(ctx, id)
		switch {
		case errors.Is(err, errs.ErrNotFound):
			continue
		case errors.Is(err, errs.ErrCorrupt):
			return fmt.Errorf("no snapshot can be made for the copy: %s of %q: %w → memctl verify shows the damage, "+
				"memctl repair restores what can be restored", k.Folder, id, err)
		case err != nil:
			return fmt.Errorf("%s of %q: %w", k.Folder, id, err)
		}
		name := k.Folder + "/" + k.FileName(id)
		if err := w.Add(name, ' ', d.Time, d.Bytes, sha256.Sum256(d.Bytes)); err != nil {
			return err
		}
	}
	return nil
}
