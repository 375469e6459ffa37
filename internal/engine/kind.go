package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/working"
)

// Kind is a kind of document in an open store, with the folder of its files and the functions that parse them.
type Kind struct {
	*kind.Kind
	*docfile.Folder
	Parse func(data []byte, id string) (Parsed, error)
	// Parses a document that a caller writes; the current limits apply.
	parseNew func(data []byte, id string) (Parsed, error)
	purged   func(p *Parsed, data []byte) error // returns an error for a document whose text was purged
}

// Parsed is a parsed document in the form of package kind.
type Parsed = kind.Content

// CacheKey returns the key of a document in the cache: the id of a memory itself, or \xff, the kind's letter and the id
// of another document. No valid id begins with \xff, since ids are UTF-8; for an invalid one, Load also compares the
// kind.
func (k *Kind) CacheKey(id string) string {
	if k.Kind == kind.Memories {
		return id
	}
	return "\xff" + string(rune(k.Letter)) + id
}

// kinds are the kinds of documents of a store.
type kinds struct {
	Memories, Assemblies, Notes *Kind
	// The kind of the scopes of working memory: they have no lines in the index, and only a purge uses it.
	Scopes *Kind
	// The kinds of package kind, in the order of the index's sections and of the folder times in a checkpoint.
	All []*Kind
}

// newKinds returns the kinds of documents of a store whose folders are in layout. Times without a zone are in
// zone; limits returns the current limits.
func newKinds(layout docfile.Layout, zone *time.Location, limits func() (memstore.Limits, assembly.Limits),
	purged func(k *Kind, p *Parsed, data []byte) error) *kinds {
	ks := &kinds{Scopes: &Kind{Kind: kind.Scopes, Folder: layout.Folder(kind.Scopes.Folder)}}
	for _, k := range kind.Kinds {
		ks.All = append(ks.All, &Kind{
			Kind: k, Folder: k.In(layout),
			Parse: func(data []byte, id string) (Parsed, error) {
				return k.Decode(data, kind.DecodeOptions{Limits: kind.StoredLimits, Location: zone, ID: id})
			},
			parseNew: func(data []byte, id string) (Parsed, error) {
				memory, group := limits()
				return k.Decode(data, kind.DecodeOptions{Limits: kind.Limits{Memory: memory, Assembly: group, Note: k.MostBytes},
					Location: zone, ID: id})
			},
		})
	}
	for _, k := range ks.All {
		k.purged = func(p *Parsed, data []byte) error { return purged(k, p, data) }
	}
	ks.Memories, ks.Assemblies = ks.All[kind.Memories.At], ks.All[kind.Assemblies.At]
	ks.Notes = ks.All[kind.Notes.At]
	return ks
}

// Present returns the kinds whose documents the store has or once had. For other kinds the store has no folder and no
// files.
func (eng *Engine) Present() []*Kind {
	return slices.DeleteFunc(slices.Clone(eng.kinds.All), func(k *Kind) bool { return !eng.HasHad(k) })
}

// HasHad reports whether the store has, or once had, documents of a kind. A store whose index was rebuilt from
// the files may have documents of a kind before the feature of that kind is raised.
func (eng *Engine) HasHad(k *Kind) bool {
	return k.Feature == 0 || eng.log.Report().Features&k.Feature != 0 || eng.state.Had(k.Letter)
}

// lacks reports whether the folder of a kind was missing when the store was opened.
func (eng *Engine) lacks(k *kind.Kind) bool { return slices.Contains(eng.lacking, k) }

// Filed returns the kinds of documents that may have files. It omits a kind if its folder was missing when the store
// was opened and the store has never had documents of this kind.
func (eng *Engine) Filed() []*Kind {
	return slices.DeleteFunc(slices.Clone(eng.kinds.All), func(k *Kind) bool {
		return eng.lacks(k.Kind) && !eng.state.Had(k.Letter)
	})
}

// Folds reports whether this store treats different paths as equal if they differ only as kind.Folding
// describes.
func (k *Kind) Folds() bool { return k.Kind.Folds() && (!k.FoldsAsDisk || k.IgnoresCase()) }

// Misplaced returns the error for a document whose file is not named after the document's id. id is the id in the
// document.
func (k *Kind) Misplaced(id string) error {
	return fmt.Errorf("%w: contains id %s, which belongs in %s; rename the file or change the id", errs.ErrInvalid,
		human.Quote(id), k.File(id))
}

// Elsewhere returns the error for a file that is not a document of its folder's kind k. data is the content of the
// file, and cause is the error of parsing it. If the file is a document of another kind, the returned error names
// the correct folder. Otherwise Elsewhere returns cause.
func (ks *kinds) Elsewhere(k *Kind, data []byte, cause error) error {
	var field *errs.FieldError
	if k.Opaque || !errors.As(cause, &field) || field.Field != k.IDName || field.Value != "" {
		return cause
	}
	for _, other := range ks.All {
		if p, err := other.Parse(data, ""); other != k && err == nil {
			return fmt.Errorf("%w: contains %s %s, which belongs in %s; move the file there", errs.ErrInvalid, other.Noun,
				human.Quote(p.ID), other.File(p.ID))
		}
	}
	return cause
}

// ParseEdit parses the content of a document file that was edited by hand. The limits of documents apply as
// for a put, and the document's text must not be a purged one.
func (k *Kind) ParseEdit(data []byte, id string) (Parsed, error) {
	p, err := k.ParseNew(data, id)
	if err != nil {
		return p, err
	}
	if err := k.purged(&p, data); err != nil {
		return Parsed{}, err
	}
	return p, nil
}

// ParseNew parses a document that is being put. The limits of documents apply.
func (k *Kind) ParseNew(data []byte, id string) (Parsed, error) {
	p, err := k.parseNew(data, id)
	if err != nil {
		if _, stored := k.Parse(data, id); stored == nil {
			err = fmt.Errorf("%w: shorten the document, or raise the limit in config.json and save the document "+
				"again", err)
		}
		return Parsed{}, err
	}
	if err = k.CheckID(p.ID); err == nil && k.Opaque {
		err = vfs.CheckText(data)
	}
	if err != nil {
		return Parsed{}, err
	}
	return p, nil
}

// In returns the kind of document whose lines are in a section of the index.
func (ks *kinds) In(section int) *Kind {
	if k := kind.In(section); k != nil {
		return ks.All[k.At]
	}
	return nil
}

// Named returns the kind of document whose log keys begin with a letter; for any other letter the error is
// errs.ErrInvalid.
func (ks *kinds) Named(letter byte) (*Kind, error) {
	if k := kind.Lettered(letter); k != nil {
		return ks.All[k.At], nil
	}
	return nil, fmt.Errorf("%w: no kind of document has the letter %q", errs.ErrInvalid, letter)
}

// Of returns the kind of the document to which a log key belongs, nil if it is not the key of a document.
func (ks *kinds) Of(key string) *Kind {
	if k := kind.Of(key); k != nil {
		return ks.All[k.At]
	}
	return nil
}

// Valid returns an error if k is the kind of scopes of working memory and one of the ids is invalid. It does not check
// the ids of other kinds.
func (k *Kind) Valid(ids []string) error {
	if k.Section >= 0 {
		return nil
	}
	for _, key := range ids {
		if _, err := working.ParseScope(key); err != nil {
			return err
		}
	}
	return nil
}
