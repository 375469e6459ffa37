package storm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/storetest"
)

// stormEdited is the number of memories that only the editor changes.
const stormEdited = 4

func editedID(k int) string { return fmt.Sprintf("hand.%d", k) }

// ofEditor reports whether an error is about a file that is just being saved by hand: a reader may find
// it incomplete meanwhile.
func ofEditor(text string) bool { return strings.Contains(text, "hand.") }

var contentMember = regexp.MustCompile(`"content": "[^"]*"`)

// edit saves each of its memories by hand, once, as editors do: in place, or by renaming; while the
// processes work. They notice the edit when they read the memory.
func (s *storm) edit(round int) {
	for k := range stormEdited {
		time.Sleep(time.Duration(s.editor.IntN(200)) * time.Millisecond)
		name := filepath.Join(s.dir, "memories", jsondoc.FileName(editedID(k)))
		b, err := os.ReadFile(name)
		if err != nil {
			s.t.Errorf("edit: %v", err)
			return
		}
		state := fmt.Sprintf("e%d.%d", round, k)
		b = contentMember.ReplaceAll(b, fmt.Appendf(nil, `"content": %q`, storetest.Content(state, s.editor.IntN(300))))
		if s.editor.IntN(2) == 0 {
			err = os.WriteFile(name, b, 0o600)
		} else if err = os.WriteFile(name+"~", b, 0o600); err == nil {
			err = os.Rename(name+"~", name)
		}
		if err != nil {
			s.t.Errorf("edit: %v", err)
			return
		}
		s.edits++
		s.edited[k] = state
	}
}

// checkEdits checks that the store has the last saves.
func (s *storm) checkEdits(st *varve.Store) {
	for k, state := range s.edited {
		if is := storetest.StateOf(st.Get(context.Background(), editedID(k))); is != state {
			s.t.Errorf("%s is %q, though %q was saved by hand, and nobody changed it since", editedID(k), is, state)
		}
	}
}
