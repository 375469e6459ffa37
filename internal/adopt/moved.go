package adopt

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// Limits on what is remembered about files, for a kind with companions, to recognize a renamed file.
const (
	// movedWithin is the maximum time between the adoption of a file under its new name and the moment at
	// which the loss of the old file is noticed.
	movedWithin = time.Minute
	mostInodes  = 1 << 18
	mostArrived = 1 << 16
)

// moves records the files that this process has seen, to recognize files that were renamed by hand. The Adopter first
// adopts a file with a new name as a new document, while the old file is missing. When Settle decides about the
// missing file, the two documents become one: see Files.moved.
type moves struct {
	mu      sync.Mutex
	inodes  map[string]inode   // inodes of files that were at their paths, by id
	arrived map[string]arrival // files that were adopted as new documents, by id
}

type inode struct{ dev, ino uint64 }

type arrival struct {
	id    string
	inode inode
	hash  [32]byte
	size  int
	lsn   wal.LSN
	at    time.Time
}

// saw records the inode of a document's file.
func (m *moves) saw(k *engine.Kind, id string, info vfs.Info) {
	if k.Companion == nil || info.Ino == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inodes == nil || len(m.inodes) >= mostInodes {
		m.inodes = map[string]inode{}
	}
	m.inodes[id] = inode{info.Dev, info.Ino}
}

// came records that a file was adopted. lsn is the version of the new document, or 0 for a new version of an
// existing document.
func (m *moves) came(k *engine.Kind, id, name string, data []byte, lsn wal.LSN, now time.Time) {
	if k.Companion == nil {
		return
	}
	info, err := k.Stat(name)
	if err != nil {
		return
	}
	m.saw(k, id, info)
	if _, ok := k.Companion(id); !ok || lsn == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.arrived == nil || len(m.arrived) >= mostArrived {
		m.arrived = map[string]arrival{}
	}
	m.arrived[id] = arrival{id: id, inode: inode{info.Dev, info.Ino}, hash: sha256.Sum256(data), size: len(data),
		lsn: lsn, at: now}
}

// pair finds the recently adopted files that are missing documents under a new name, and returns these files by the id
// of the missing document. gone has the missing documents by id.
//
// pair first searches for a file that has the inode which the missing file had. The file must have the same content,
// or isEdit must report that its content may be an edit of the missing document. If there is no such file, pair takes
// a file with the same content, provided that only one missing document and one adopted file have that content. Empty
// files are not paired by content.
func (m *moves) pair(gone map[string]*engine.Version, now time.Time,
	isEdit func(id string, a arrival) bool) map[string]arrival {
	m.mu.Lock()
	defer m.mu.Unlock()
	byInode, byHash := map[inode]arrival{}, map[[32]byte][]arrival{}
	for id, a := range m.arrived {
		if now.Sub(a.at) > movedWithin || now.Before(a.at) {
			delete(m.arrived, id)
			continue
		}
		if gone[id] != nil { // renamed again since
			continue
		}
		byInode[a.inode] = a
		byHash[a.hash] = append(byHash[a.hash], a)
	}
	paired, taken := map[string]arrival{}, map[string]bool{}
	take := func(id string, a arrival) {
		paired[id], taken[a.id] = a, true
		delete(m.arrived, a.id)
	}
	hashes := map[[32]byte][]string{}
	order := slices.Collect(maps.Keys(gone))
	slices.SortFunc(order, func(a, b string) int { // a document that was renamed twice comes last
		return cmp.Compare(m.arrived[a].lsn, m.arrived[b].lsn)
	})
	for _, id := range order {
		v := gone[id]
		is, known := m.inodes[id]
		delete(m.inodes, id)
		if a, ok := byInode[is]; known && ok && !taken[a.id] && a.lsn > v.LSN &&
			(a.hash == v.Line.ContentHash || isEdit(id, a)) {
			take(id, a)
			continue
		}
		hashes[v.Line.ContentHash] = append(hashes[v.Line.ContentHash], id)
	}
	for hash, ids := range hashes {
		if list := byHash[hash]; len(ids) == 1 && len(list) == 1 && !taken[list[0].id] && list[0].size > 0 &&
			list[0].lsn > gone[ids[0]].LSN {
			take(ids[0], list[0])
		}
	}
	return paired
}

// moved pairs the missing documents ids with files that were adopted under another name, and commits each pair as
// a move. remaining has the ids of the documents that are still missing, without the companions of moved
// documents. changed reports whether a document was moved. For a kind without companions, remaining is ids.
//
// A move is one commit: it deletes the old document and its companion, and gives the new document a companion that
// records the previous place.
func (f *Files) moved(ctx context.Context, k *engine.Kind, ids []string) (remaining []string, changed bool, err error) {
	if k.Companion == nil {
		return ids, false, nil
	}
	ed := f.ed
	held, unlock, err := ed.flusher.Lock(ctx)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	if err := ed.engine.CatchUp(ctx); err != nil {
		return nil, false, err
	}
	gone := map[string]*engine.Version{}
	for _, id := range ids {
		if _, ok := k.Companion(id); !ok {
			continue
		}
		v, is, err := ed.stillGone(ctx, held, k, id)
		if err != nil {
			return nil, false, err
		}
		if is {
			gone[id] = &v
		}
	}
	pairs := ed.moves.pair(gone, ed.engine.Env().Clock(), func(id string, a arrival) bool {
		was, ok := ed.engine.FromLog(ctx, k, id, gone[id].LSN)
		is, err := ed.engine.Settled(ctx, k, a.id)
		return ok && err == nil && alike(was.Doc, is.Doc)
	})
	done := map[string]bool{}
	for id, a := range pairs {
		switch err := ed.move(ctx, held, k, id, gone[id], a); {
		case err == nil:
			changed, done[id] = true, true
			companion, _ := k.Companion(id)
			done[companion] = true
		case ctx.Err() != nil || errors.Is(err, errs.ErrClosed) || errors.Is(err, errs.ErrReadOnly):
			return nil, changed, err
		default: // it stays a deletion and a creation
			ed.engine.Env().Logger.Warn("a renamed file is treated as a deleted and a new file", "path", k.File(id),
				"to", k.File(a.id), "err", err)
		}
	}
	for _, id := range ids {
		if !done[id] {
			remaining = append(remaining, id)
		}
	}
	return remaining, changed, nil
}

// move commits the move of the document id to the path of the adopted file a. old is the newest version of the
// document. The error matches errs.ErrConflict if the file's document was deleted in the meantime or already has a
// companion.
func (ed *Adopter) move(ctx context.Context, held *wal.Held, k *engine.Kind, id string, old *engine.Version,
	a arrival) error {
	find := func(id string) (engine.Version, error) {
		v, err := ed.engine.Find(ctx, k, id, false)
		if errors.Is(err, errs.ErrNotFound) {
			return engine.Version{}, nil
		}
		return v, err
	}
	from, _ := k.Companion(id)
	to, _ := k.Companion(a.id)
	had, err := ed.engine.Settled(ctx, k, from)
	if ignoreNotFound(err) != nil {
		return err
	}
	has, err := find(to)
	if err != nil {
		return err
	}
	if now, err := find(a.id); err != nil || now.LSN == 0 || has.LSN != 0 {
		return errors.Join(err, errs.ErrConflict) // deleted meanwhile, or it has a companion already
	}
	doc, err := k.Moved(id, old.LSN, had.Doc)
	if err != nil {
		return err
	}
	changes := []commit.DocumentChange{{ID: id, Delete: true, Was: *old, Cause: wal.CauseEdited},
		{ID: to, Doc: doc, Cause: wal.CauseEdited}}
	if had.LSN != 0 {
		changes = append(changes, commit.DocumentChange{ID: from, Delete: true, Was: had, Cause: wal.CauseEdited})
	}
	versions, err := ed.commits.ChangeDocumentsHeld(ctx, held, k, changes)
	if err != nil {
		return err
	}
	ed.engine.Health().Edit()
	ed.engine.Env().Event(env.Event{Kind: env.EventAdopted, ID: a.id, LSN: versions[1], Path: k.File(a.id),
		Note: "renamed by hand, from " + k.File(id)})
	return nil
}

// alike reports whether a file with the text old was probably renamed and edited to the text edited: at least half
// of old, measured in bytes, must consist of lines that edited has too. The inode alone proves nothing, because a
// file system may give a free inode to another file at once.
func alike(old, edited []byte) bool {
	has := map[string]int{}
	for line := range bytes.Lines(edited) {
		has[string(line)]++
	}
	same := 0
	for line := range bytes.Lines(old) {
		if has[string(line)] > 0 {
			has[string(line)]--
			same += len(line)
		}
	}
	return len(old) > 0 && 2*same >= len(old)
}

// tick is longer than one step of the clock from which a kernel takes the times of files.
const tick = 20 * time.Millisecond

// read reads a file that differs from the index. For a kind with FileWins (see kind.Kind), read waits until the last
// change of the file is longer than a tick ago. The reason: the version gets the time of the file. Another change
// within the tick would leave that time unchanged, and would therefore count as damage. read gives up waiting after a
// few attempts.
func (ed *Adopter) read(ctx context.Context, k *engine.Kind, name string) (data []byte, info vfs.Info, err error) {
	for try := 0; ; try++ {
		data, info, err = k.Read(name, places.StoredMost)
		age := ed.engine.Env().Clock().Sub(info.Mtime)
		if err != nil || !k.FileWins || age < 0 || age >= tick || try == judgeTries {
			return data, info, err
		}
		if err := ed.engine.Env().Sleep(ctx, tick-age); err != nil {
			return nil, info, err
		}
	}
}

// normal renames the files whose names are not in Unicode normal form C, and returns the names that all files then
// have. It reports and omits files that cannot be renamed. In a read-only store, it renames nothing.
func (ed *Adopter) normal(k *engine.Kind, names []string) []string {
	list := names[:0:0]
	for _, name := range names {
		if to, ok := k.Normal(name); ok && !ed.engine.Env().ReadOnly {
			err := k.Rename(name, to)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				ed.reported(k, name, err)
				continue
			}
			name = to
		}
		list = append(list, name)
	}
	return list
}
