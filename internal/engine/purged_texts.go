package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// purgedTexts caches wal/purged-texts, the hashes of purged texts.
type purgedTexts struct {
	mu    sync.Mutex
	texts *purgefile.Texts // hashes of the purged texts; nil: no text was purged
	file  vfs.Info
	err   error
}

func (eng *Engine) textsFile() *purgefile.TextsFile {
	return purgefile.NewTextsFile(eng.env.FS, eng.env.Dir)
}

// readTexts returns the list of hashes of purged texts, or nil if no text was purged. The caller must not change the
// list.
func (eng *Engine) readTexts() (*purgefile.Texts, error) {
	if eng.log != nil && eng.log.Features()&wal.FeaturePurges == 0 { // nil: the log is being opened
		return nil, nil
	}
	f, p := eng.textsFile(), &eng.purgedTexts
	p.mu.Lock()
	defer p.mu.Unlock()
	info, err := eng.env.FS.Stat(f.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, eng.env.IOError("reading", f.Path(), err)
	}
	if info.Size == p.file.Size && info.Mtime.Equal(p.file.Mtime) && info.Ino == p.file.Ino {
		return p.texts, p.err
	}
	t, _, _, err := f.Read()
	p.texts, p.file, p.err = t, info, eng.env.IOError("reading", f.Path(), err)
	return p.texts, p.err
}

// TextOf returns the part of a document that is the document's text for purges. A purge stores the hash of the text, so
// that the store can refuse the same text later.
func TextOf(p *Parsed, doc []byte) string {
	switch {
	case p.Memory != nil:
		return p.Memory.Content
	case p.Group != nil:
		return p.Group.Name + "\n" + p.Group.Description
	}
	return string(doc)
}

// CheckText returns an *errs.PurgedError if a text was purged and the document id may not have it; otherwise nil. A
// document may keep the text of its newest version. If that version can no longer be read, the document may have any
// purged text, unless the document or one of its versions was purged.
func (eng *Engine) CheckText(ctx context.Context, k *Kind, id, text string) error {
	t, err := eng.readTexts()
	if err != nil || !t.Has(k.Key(id), text) {
		return err
	}
	if place, err := eng.state.Find(k.Letter, id); err == nil {
		v, ok := eng.FromLog(ctx, k, id, place.Version)
		if !ok && !place.InLog { // the file is the only copy
			v, err = eng.Read(ctx, k, id, place, true)
			ok = err == nil
		}
		if !ok && eng.neverPurged(k.Key(id)) {
			return nil
		}
		if p, err := k.Parse(v.Doc, id); ok && err == nil && TextOf(&p, v.Doc) == text {
			return nil
		}
	}
	return &errs.PurgedError{Kind: k.Noun, ID: id}
}

// neverPurged reports whether neither the document with this log key nor any of its versions was ever purged. It
// returns false if the list of purges cannot be read.
func (eng *Engine) neverPurged(key string) bool {
	rows, err := eng.Purged()
	return err == nil && rows.UpTo(key) == 0 && len(rows.Redactions(key)) == 0
}

// NewTexts returns an empty list for the texts that a purge is about to remove. The list has the store's key for
// hashing texts.
func (eng *Engine) NewTexts() (*purgefile.Texts, error) {
	t, _, _, err := eng.textsFile().Read()
	if err != nil {
		return nil, eng.env.IOError("reading", eng.textsFile().Path(), err)
	}
	if t != nil {
		return t.Empty(), nil
	}
	var key [purgefile.KeySize]byte
	if err := eng.env.Random(key[:]); err != nil {
		return nil, err
	}
	return purgefile.NewTexts(key), nil
}

// SaveTexts adds the texts in a list made by NewTexts to the store's list of purged texts, durably. The caller
// holds flush.lock.
func (eng *Engine) SaveTexts(texts *purgefile.Texts) error {
	if texts.Len() == 0 {
		return nil
	}
	t, _, _, err := eng.textsFile().Read()
	if err != nil {
		return eng.env.IOError("reading", eng.textsFile().Path(), err)
	}
	if t == nil {
		t = texts.Empty()
	}
	if !t.AddAll(texts) {
		return nil
	}
	return eng.writeTexts(t)
}

func (eng *Engine) writeTexts(t *purgefile.Texts) error {
	f := eng.textsFile()
	temp := filepath.Join(eng.env.Dir, "tmp", purgefile.TextsName+"."+eng.token)
	// Never readable for others, whatever the mode of the store's files is: with the key a guess can be confirmed.
	return eng.env.IOError("writing", f.Path(), f.Write(t, temp, eng.env.FileMode&^0o007))
}

// LiftText allows a purged text to be stored again.
func (eng *Engine) LiftText(ctx context.Context, k *Kind, id, text string) error {
	if t, err := eng.readTexts(); err != nil || !t.Has(k.Key(id), text) {
		return err
	}
	held, err := eng.log.LockFlush(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	t, _, _, err := eng.textsFile().Read()
	if err != nil || t == nil || !t.Remove(k.Key(id), text) {
		return eng.env.IOError("reading", eng.textsFile().Path(), err)
	}
	return eng.writeTexts(t)
}

// refuseText returns an error for the document in a file if the document's text was purged.
func (eng *Engine) refuseText(k *Kind, p *Parsed, data []byte) error {
	err := eng.CheckText(context.Background(), k, p.ID, TextOf(p, data))
	if purged := (*errs.PurgedError)(nil); errors.As(err, &purged) {
		return inFile(purged)
	}
	return err
}

func inFile(err *errs.PurgedError) error {
	return fmt.Errorf("%w: delete the file, or store the text on purpose: memctl put --force-purged", err)
}

// CameBack returns an error for the document in a file if both its id and its text were purged. It returns nil if the
// lists of purges cannot be read. It is called when an index is rebuilt from files alone. A document whose id was not
// purged is accepted even if its text is a purged one, because it may always have had this text.
func (eng *Engine) CameBack(k *Kind, p *Parsed, data []byte) error {
	t, err := eng.readTexts()
	if err != nil || !t.Has(k.Key(p.ID), TextOf(p, data)) {
		return nil
	}
	if rows, err := eng.Purged(); err != nil || rows.UpTo(k.Key(p.ID)) == 0 {
		return nil
	}
	return inFile(&errs.PurgedError{Kind: k.Noun, ID: p.ID})
}
