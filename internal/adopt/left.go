package adopt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/vfs"
)

// The reasons why a file in the folder of a kind whose files win is not touched: it is not a document and has no
// history.
const (
	LeftLink    = "link"    // a link, which is not followed
	LeftSpecial = "special" // a FIFO, a socket, a device
	LeftLarge   = "large"   // larger than a document may be
	LeftHidden  = "hidden"  // its name, or that of a folder that it is in, begins with a dot
	LeftIgnored = "ignored" // by notes_ignore
	LeftStore   = "store"   // it is in the folder of another store
	LeftName    = "name"    // its path has a control character, or something else that no path of a document has
)

// Left is a file that the store does not touch, although it is in the folder of a kind, because it is not a document.
type Left struct {
	Path string // relative to the store
	Why  string
}

// unfit returns the reason why a file that the index does not list cannot be a document of a kind with FileWins (see
// kind.Kind). It returns "" if the file may be a document, or if the kind does not have FileWins.
func (ed *Adopter) unfit(k *engine.Kind, name string) string {
	if !k.FileWins {
		return ""
	}
	info, err := k.Stat(name)
	if err != nil {
		return ""
	}
	return leftReason(k, info)
}

func leftReason(k *engine.Kind, info vfs.Info) string {
	switch {
	case info.Mode&fs.ModeSymlink != 0:
		return LeftLink
	case !info.Mode.IsRegular():
		return LeftSpecial
	case info.Size > k.MostBytes:
		return LeftLarge
	}
	return ""
}

// isLeft reports whether the store does not touch a file that the index does not list, because the file cannot be a
// document. It returns false for kinds without FileWins (see kind.Kind).
func (ed *Adopter) isLeft(k *engine.Kind, name string) bool {
	return k.FileWins && (!k.IsDocument(name) || ed.Ignores(k, name) || ed.unfit(k, name) != "")
}

// leftFor returns the reason why the store does not touch a file in the folder of a kind with FileWins (see
// kind.Kind). It returns "" if the file is a document or may become one. known has the folders that inStore has
// examined already; nil: inStore examines each folder.
func (ed *Adopter) leftFor(ctx context.Context, k *engine.Kind, name string, known map[string]bool) (string, error) {
	if !k.IsDocument(name) {
		for segment := range strings.SplitSeq(name, "/") {
			if strings.HasPrefix(segment, ".") {
				return LeftHidden, nil
			}
		}
		if why := ed.unfit(k, name); why == LeftLink || why == LeftSpecial {
			return why, nil
		}
		return LeftName, nil
	}
	why := ed.unfit(k, name)
	id, ok := k.ID(name)
	if why == "" && ok && k.FileWins {
		switch {
		case ed.inStore(k, name, known):
			why = LeftStore
		case ed.engine.Settings().Now().Ignores(id):
			why = LeftIgnored
		}
	}
	if why == "" || !ok {
		return "", nil
	}
	switch _, err := ed.engine.Find(ctx, k, id, false); {
	case errors.Is(err, errs.ErrNotFound):
		return why, nil
	default: // of a document in the place of which such a file is, verify says more
		return "", err
	}
}

// LeftOut yields the files that the store does not touch, although they are in the folders of kinds with FileWins (see
// kind.Kind), because they are not documents and nothing is wrong with them. An error ends the sequence.
func (ed *Adopter) LeftOut(ctx context.Context) iter.Seq2[Left, error] {
	return engine.Reading(ctx, ed.engine, func(yield func(Left, error) bool) {
		for _, k := range ed.present() {
			if !k.FileWins {
				continue
			}
			names, err := k.Names()
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				yield(Left{}, fmt.Errorf("listing the files that are not notes: %w", err))
				return
			}
			known := map[string]bool{}
			for _, name := range names {
				why, err := ed.leftFor(ctx, k, name, known)
				if err == nil {
					err = ctx.Err()
				}
				if err != nil {
					yield(Left{}, err)
					return
				}
				if why != "" && !yield(Left{k.Name() + "/" + name, why}, nil) {
					return
				}
			}
		}
	})
}
