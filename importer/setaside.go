package importer

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/human"
)

// stamp matches the time that backups append to an id in a file name.
var stamp = regexp.MustCompile(`[_.-]\d{8}[_-]?\d{6}.*$`)

// setAside examines a folder of copies. Most files in corrupted_backups/ are valid: thousands were set aside because
// of false alarms. If an id is imported from another file, setAside only counts the copy. If an id exists nowhere
// else, it reports the id, and imports the newest copy if Options.SetAside is set.
func (f *folder) setAside(dir string) error {
	names, err := f.tree(dir)
	if err != nil {
		return err
	}
	var known, alone, broken, other int
	told := map[string]bool{}
	// Newest first: names sort by their time stamps.
	slices.Reverse(names)
	for _, name := range names {
		if path.Ext(name) != ".json" || derived(name) {
			other++
			continue
		}
		raw, err := f.read(name)
		var doc *object
		var mends []string
		if err == nil {
			doc, mends, err = parse(raw)
		}
		if err != nil {
			broken++
			continue
		}
		if doc.isAssembly() || !f.isMemory(name, doc) {
			other++
			continue
		}
		id, note := doc.id, ""
		if !doc.idText {
			id, note = stamp.ReplaceAllString(strings.TrimSuffix(path.Base(name), ".json"), ""),
				"the file has no id; the id from the file name was used"
		}
		if _, ok := f.seen[id]; ok || told[id] {
			known++
			continue
		}
		told[id] = true
		alone++
		p := Problem{Path: name, ID: id, Kind: KindSetAside, Reason: "a valid memory that exists nowhere else",
			Taken: f.opts.SetAside}
		if !f.opts.SetAside {
			p.Reason += "; to import it: memctl import --set-aside"
		} else if _, err := f.item(Item{ID: id, JSON: doc.withID(id), Path: name, Note: note, names: doc.names},
			raw); err != nil {
			return err
		} else if len(mends) > 0 {
			p.Reason += "; " + strings.Join(mends, "; ")
		}
		if err := f.problem(p); err != nil {
			return err
		}
	}
	return f.problem(Problem{Path: dir, Kind: KindSetAside, Taken: f.opts.SetAside && alone > 0,
		Reason: fmt.Sprintf("%s: copies of memories that exist elsewhere: %d; memories that exist nowhere else: %d; "+
			"unreadable: %d; others: %d", human.Count(len(names), "file", "files"), known, alone, broken, other)})
}
