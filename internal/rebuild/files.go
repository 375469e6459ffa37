package rebuild

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/wal"
)

// Want describes the index that is to be built.
type Want struct {
	Store uuid.UUID
	At    wal.Mark
	// version returns the version that a document is known to have had when its content had the hash sum; zero
	// if none is known.
	version func(k *engine.Kind, id string, sum [32]byte) (known, error)
	model   index.Model // model of the vectors according to log and archive, used if the state has none

	restored *backup.Restored // what is known of a store that is being restored; nil: none is
}

// stray returns the version to assign to the document in a file if the version is unknown. While a change of the
// embedding model is being completed, it returns a version from before the change, so that the vector computed for the
// document's content is used. In a store that is being restored, restored knows for each document whether its vector is
// from before the change.
func (r *Want) stray(file string) wal.LSN {
	if r.model.Switching() && (r.restored == nil || r.restored.Older(file)) {
		return r.model.Since - 1
	}
	return r.At.LSN - 1
}

// known is the known data about the document in a file: the version that was written with the same bytes, the FAISS id
// in the document's index line, and the times of the document. The file of an adopted edit does not contain these
// times.
type known struct {
	at               wal.LSN
	vector           int64
	by               uint32 // number of the version's writer
	created, updated time.Time
}

// knownOf returns the data that an index line has about the version at position pos.
func knownOf(pos wal.LSN, line *index.Entry) known {
	return known{pos, line.VectorID, line.By, line.CreatedAt, line.UpdatedAt}
}

// rebuildIndex builds a new base of the index from the document files of all kinds.
//
// If the version of a document is no longer known, the document gets a version that no frame can have (LSNs are
// multiples of 8). So a condition on the old version fails, and never holds by mistake.
//
// Damaged files stay in their place and are reported. If a file cannot be read now, rebuildIndex returns an error,
// because it must not treat that file as missing.
func (mk *Maker) rebuildIndex(ctx context.Context, r Want) (*index.Set, int, error) {
	mk.views.Rebuilding(ctx) // views built from the files may differ, as of the same moment
	var list []index.Change
	facts := map[string]known{} // by key
	target := mk.engine.Target(r.Store, r.At)
	if target.Model.LSN > r.model.LSN {
		r.model = target.Model
	}
	target.Model = r.model
	for _, k := range mk.engine.Filed() {
		var err error
		if list, err = mk.scanFiles(ctx, k, r, list, facts); err != nil {
			return nil, 0, err
		}
	}
	empty := index.Empty(r.At.LSN)
	defer empty.Release()
	_, err := index.WriteBase(empty, target,
		index.Changes{List: list, Line: func(dst []byte, c index.Change) ([]byte, error) {
			k := mk.engine.Kinds().In(c.Section)
			p, doc, err := ParseFile(mk.engine, k, k.FileName(c.ID))
			if err != nil {
				return nil, err
			}
			was := facts[k.Key(c.ID)]
			if !was.updated.IsZero() {
				*p.Created, *p.Updated = was.created, was.updated
			}
			line, err := p.Line(doc.Bytes, was.vector)
			if err != nil {
				return nil, err
			}
			return index.Finish(dst, line, c.Version, doc.mtime.UnixMicro(), was.by)
		}})
	if err != nil {
		return nil, 0, mk.engine.Env().IOError("writing", filepath.Join(mk.engine.Env().Dir, index.BaseName), err)
	}
	set, err := index.Load(mk.engine.Env().FS, mk.engine.Env().Dir, index.Want{Store: r.Store.String(), Spilled: r.At.LSN},
		nil)
	if err != nil && env.Passing(err) {
		err = mk.engine.Env().IOError("reading", filepath.Join(mk.engine.Env().Dir, index.BaseName), err)
	}
	return set, len(list), err
}

// scanFiles reads the documents in a kind's folder and adds them to list. In facts it records what the files
// do not contain: the ids of vectors that differ from the versions, and the times of adopted edits.
func (mk *Maker) scanFiles(ctx context.Context, k *engine.Kind, r Want, list []index.Change,
	facts map[string]known) ([]index.Change, error) {
	first, versions := len(list), map[string]bool{} // the files with a version that log or index have
	for e, err := range k.Scan() {
		if errors.Is(err, fs.ErrNotExist) && e.Name == "" {
			break // no such folder yet
		}
		if err == nil && (!e.Info.Mode.IsRegular() || !k.IsDocument(e.Name)) {
			continue
		}
		if err == nil {
			err = ctx.Err()
		}
		var p engine.Parsed
		var doc stored
		if err == nil {
			p, doc, err = ParseFile(mk.engine, k, e.Name)
		}
		if errors.Is(err, errs.ErrCorrupt) {
			mk.engine.NoteProblem(err)
			continue
		}
		if err != nil {
			return nil, err
		}
		c := index.Change{Section: k.Section, ID: p.ID, Version: r.stray(k.Name() + "/" + e.Name), Members: p.Members}
		sum := sha256.Sum256(doc.Bytes)
		was := known{}
		if r.version != nil {
			if was, err = r.version(k, p.ID, sum); err != nil {
				return nil, err
			}
		}
		if why := mk.engine.CameBack(k, &p, doc.Bytes); why != nil && was.at == 0 && r.restored == nil {
			mk.engine.NoteProblem(fmt.Errorf("%s/%s: %w", k.Name(), e.Name, why))
			continue
		}
		if was.at != 0 {
			c.Version, versions[p.ID] = was.at, true
		} else if len(p.Vector) > 0 {
			was.vector = index.StrayVector(sum)
		}
		if r.restored != nil {
			was.by = r.restored.By(k.Name() + "/" + e.Name)
		}
		if was.updated.Equal(*p.Updated) && was.created.Equal(*p.Created) {
			was.created, was.updated = time.Time{}, time.Time{} // as in the file
		}
		if was.vector != 0 || was.by != 0 || !was.updated.IsZero() {
			facts[k.Key(p.ID)] = was
		}
		list = append(list, c)
	}
	if k.Tree() {
		list = append(list[:first], mk.placed(k, list[first:], versions)...)
	}
	return list, nil
}

// placed returns the documents in list that can exist beside each other. If the paths of two documents exclude each
// other, placed prefers a document with a known version; versions has the ids of these documents. The file of the
// other document stays in its place, and placed reports it.
func (mk *Maker) placed(k *engine.Kind, list []index.Change, versions map[string]bool) []index.Change {
	beside, refused := kind.NewBeside(k.Kind, k.Folds()), map[string]bool{}
	for _, known := range []bool{true, false} {
		for _, c := range list {
			if versions[c.ID] != known {
				continue
			}
			if other, clashes := beside.Add(c.ID); clashes {
				refused[c.ID] = true
				mk.engine.NoteProblem(k.Clashing(c.ID, other))
			}
		}
	}
	return slices.DeleteFunc(list, func(c index.Change) bool { return refused[c.ID] })
}

// Again replaces the index of a store that is in use. The document files must be durable up to the position mark.
// recent has, for each document that changed since the present index was written, the newest change. cause is the
// reason for the rebuild.
//
// If requested is false, the index is damaged: Again rebuilds it as From does, which keeps every version. If requested
// is true, the caller requests a rebuild from the files: Again does not trust the index and its backups, even if they
// look valid. It keeps the versions whose document the file still has; see versions.
func (mk *Maker) Again(ctx context.Context, held *wal.Held, mark wal.Mark, recent []index.Change, cause error,
	requested bool) error {
	if err := mk.engine.SaveWriters(ctx, mark.LSN); err != nil {
		return err
	}
	if err := mk.engine.SavePurges(mark.LSN); err != nil {
		return err
	}
	past := mk.versions(recent)
	defer past.release()
	r := Want{Store: mk.engine.Log().UUID(), At: mark,
		version: func(k *engine.Kind, id string, sum [32]byte) (known, error) {
			return past.findByHash(ctx, k, id, sum)
		}}
	var set *index.Set
	var from string
	var n int
	var err error
	if requested {
		set, n, err = mk.rebuildIndex(ctx, r)
	} else {
		set, from, n, err = mk.From(ctx, r, mk.engine.Log().Past())
	}
	if err != nil {
		return err
	}
	if err := mk.engine.Log().Notes().IndexRebuilt(held); err != nil {
		return errors.Join(err, set.Release())
	}
	if !requested {
		mk.engine.Env().Logger.Error("the index was damaged and has been rebuilt", "from", engine.Origin(from), "why",
			cause, "memories", n)
	}
	mk.engine.Env().Event(env.Event{Kind: env.EventRebuilt, Path: index.BaseName, Err: cause, Count: n,
		Note: "from " + engine.Origin(from)})
	return set.Release()
}

// stored has the bytes and the time of a file.
type stored struct {
	Bytes []byte
	mtime time.Time
}

// ParseFile reads and parses the document in the file name. It returns an error if the document's id belongs in a file
// with another name.
func ParseFile(eng *engine.Engine, k *engine.Kind, name string) (engine.Parsed, stored, error) {
	data, info, err := k.Read(name, places.StoredMost)
	if err != nil {
		return engine.Parsed{}, stored{}, fmt.Errorf("reading %s/%s: %w", k.Name(), name, err)
	}
	p, err := k.Parse(data, k.IDAt(name))
	if err != nil {
		err = eng.Kinds().Elsewhere(k, data, err)
	} else if k.FileName(p.ID) != name {
		err = k.Misplaced(p.ID)
	}
	if err != nil {
		return engine.Parsed{}, stored{}, &errs.CorruptionError{Path: k.Name() + "/" + name, Offset: -1, Err: err}
	}
	if p.Created.IsZero() {
		*p.Created = info.Mtime
	}
	if p.Updated.IsZero() {
		*p.Updated = info.Mtime
	}
	return p, stored{data, info.Mtime}, nil
}
