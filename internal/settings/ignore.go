package settings

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/note"
)

// ignoredNotes are patterns for files that editors, file managers and downloads leave behind. Names that begin with a
// dot (.#name, .name.swp, .DS_Store) never belong to notes.
var ignoredNotes = []string{"*~", "~$*", "#*#", "*.swp", "*.swo", "*.swx", "4913", "*.tmp", "*.temp", "*.part",
	"*.crdownload", "*.kate-swp", "___jb_tmp___", "___jb_old___", ".DS_Store", "._*", ".#*", "Thumbs.db", "desktop.ini"}

// mostIgnored is the maximum number of patterns in NotesIgnore.
const mostIgnored = 1000

// IgnoredNotes returns NotesIgnore, or the default patterns if it is nil.
func (c *Config) IgnoredNotes() []string {
	if c.NotesIgnore == nil {
		return slices.Clone(ignoredNotes)
	}
	return c.NotesIgnore
}

// Ignores reports whether name, the path of a file below notes/, matches a pattern of IgnoredNotes. Such a file is not
// adopted as a new note. A pattern without a slash is compared with the last part of the path, any other pattern with
// the whole path.
func (c *Config) Ignores(name string) bool {
	list := c.NotesIgnore
	if list == nil {
		list = ignoredNotes
	}
	base := path.Base(name)
	return slices.ContainsFunc(list, func(pattern string) bool {
		if strings.Contains(pattern, "/") {
			return note.Match(pattern, name)
		}
		return note.Match(pattern, base)
	})
}

func checkIgnored(list []string) error {
	if len(list) > mostIgnored {
		return &errs.FieldError{Field: Name + " notes_ignore", Value: human.Count(len(list), "pattern", "patterns"),
			Limit: fmt.Sprint(mostIgnored), Err: errs.ErrInvalid}
	}
	for _, pattern := range list {
		for segment := range strings.SplitSeq(pattern, "/") {
			if _, err := path.Match(segment, ""); err != nil || segment == "" {
				return &errs.FieldError{Field: Name + " notes_ignore", Value: human.Quote(pattern),
					Err: errors.New("must be a pattern for paths: segments separated by slashes, in which *, ?, " +
						"[a-z] and \\ have a meaning, or ** for any number of folders")}
			}
		}
	}
	return nil
}
