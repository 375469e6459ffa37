package page

import (
	"errors"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/note"
)

// shownNotes is the template data of a folder of notes.
type shownNotes struct {
	Folder  string
	Up      []crumb // links to the parent folders
	Rows    []varve.NoteEntry
	Filters []chosen // filters, which this view ignores
	More    bool
	Unread  []string
}

type crumb struct{ Name, Path string }

func crumbs(folder string) (up []crumb) {
	at := ""
	for _, name := range strings.Split(folder, "/") {
		if name == "" {
			continue
		}
		at = path.Join(at, name)
		up = append(up, crumb{visible(name), at})
	}
	return up
}

func (p *Page) notes(r *request) (*view, error) { return p.folder(r, nil) }

// folder lists a folder of notes. It shows the filters of the list as inactive and does not apply them, because filters
// apply only to a search for notes.
func (p *Page) folder(r *request, filters []chosen) (*view, error) {
	d := &shownNotes{Folder: r.get("folder"), Filters: filters}
	d.Up = crumbs(d.Folder)
	for e, err := range r.st.Notes().List(r.ctx, d.Folder, 1) {
		if err != nil {
			if d.Unread = append(d.Unread, err.Error()); fatal(err) || len(d.Unread) > MostRows {
				return nil, err
			}
			continue
		}
		if d.More = len(d.Rows) == 20*MostRows; d.More {
			break
		}
		d.Rows = append(d.Rows, e)
	}
	return &view{template: "notes", title: "Notes", data: d}, nil
}

// shownNote is the template data of one note.
type shownNote struct {
	varve.NoteInfo
	Up       []crumb
	Name     string
	Front    string        // front matter of the note, unchanged
	Rendered template.HTML // HTML of a note that is Markdown
	Text     [3]string     // for any other text: the part before the place, the place, and the part after it
	First    int           // number of the first line that is shown
	Binary   bool
	Cut      bool
	Deleted  bool
	MayEdit  bool
	Metadata []fact
	Versions []version
	Older    bool
	Unread   []string
	// Restorable is the newest version with a text, for a note that is deleted; 0: none.
	Restorable uint64
}

func (p *Page) note(r *request) (*view, error) {
	at := r.get("path")
	d := &shownNote{}
	n, err := r.st.Notes().Read(r.ctx, at)
	missing := errors.Is(err, varve.ErrNotFound)
	if err != nil && !missing {
		return nil, err
	}
	h := shownMemory{}
	h.versions(r, r.st.Notes().History(r.ctx, at))
	d.Versions, d.Older, d.Unread = h.Versions, h.Older, h.Unread
	if missing && len(d.Versions) == 0 {
		return nil, err
	}
	d.NoteInfo, d.Deleted = n.NoteInfo, missing
	if missing {
		d.Path, d.Restorable = at, h.last.LSN
		n.Content, n.Text = h.last.Document, note.IsText(h.last.Document)
	}
	up := crumbs(d.Path)
	d.Up, d.Name = up[:len(up)-1], up[len(up)-1].Name
	d.MayEdit = n.Text && len(n.Content) <= MostEdited
	switch {
	case !n.Text:
		d.Binary = true
	default:
		if err := d.fill(string(n.Content), linesOf(r.get("lines")), r.get("all") != ""); err != nil {
			return nil, err
		}
	}
	d.Metadata = facts(n.Properties.Metadata)
	return &view{template: "note", title: shortened(d.Name, 60), data: d}, nil
}

// lines is a range of lines in a text. from and to are the numbers of the first and the last line, counted from 1. from
// is 0 if there is no range.
type lines struct{ from, to int }

// linesOf parses line numbers as a link has them, for example 3 or 3-9. If s is invalid, linesOf returns the zero
// value, which means that there is no range.
func linesOf(s string) (l lines) {
	from, to, ok := strings.Cut(s, "-")
	l.from, _ = strconv.Atoi(from)
	if l.to = l.from; ok {
		l.to, _ = strconv.Atoi(to)
	}
	if l.from < 1 || l.to < l.from {
		return lines{}
	}
	return l
}

// beforePlace is the number of lines that are shown before the requested lines, if the text is too long to be shown
// from its beginning.
const beforePlace = 20

// lineStart returns the offset at which a line begins, or the length of the text if the text has fewer lines. The
// first line has the number 1.
func lineStart(text string, line int) (off int) {
	for ; line > 1; line-- {
		i := strings.IndexByte(text[off:], '\n')
		if i < 0 {
			return len(text)
		}
		off += i + 1
	}
	return off
}

// fill sets the fields of d that show the text of the note. place is the range of lines that a link asks for. If all
// is false, fill shows at most MostShown bytes: the beginning of the text or, if the range is not within this
// beginning, the part around the range.
func (d *shownNote) fill(content string, place lines, all bool) (err error) {
	text, first := content, 1
	if lineStart(content, place.from) == len(content) { // the note has become shorter
		place = lines{}
	}
	if !all {
		text = human.Head(content, MostShown)
		if place.to > 0 && lineStart(content, place.to+1) > len(text) {
			first = max(1, place.from-beforePlace)
			text = human.Head(content[lineStart(content, first):], MostShown)
		}
	}
	d.Cut, d.First = len(text) < len(content), first
	if place.from > 0 {
		place.from, place.to = place.from-first+1, place.to-first+1
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if !isMarkdown(d.Path) || !renderable(text) {
		from := lineStart(text, place.from)
		to := max(from, lineStart(text, place.to+1))
		if place.from == 0 {
			from, to = 0, 0
		}
		d.Text = [3]string{visible(text[:from]), visible(text[from:to]), visible(text[to:])}
		return nil
	}
	n := 0
	if first == 1 {
		n = note.FrontMatter([]byte(text))
	}
	d.Front = visible(withoutFence(text[:n]))
	if skipped := strings.Count(text[:n], "\n"); place.from > 0 {
		place.from, place.to = place.from-skipped, place.to-skipped
	}
	d.Rendered, err = markdown(text[n:], path.Dir(d.Path), place)
	return err
}

// withoutFence returns front matter without the lines that open and close it.
func withoutFence(front string) string {
	_, front, _ = strings.Cut(front, "\n")
	return front[:strings.LastIndexByte(strings.TrimRight(front, "\n"), '\n')+1]
}

func isMarkdown(name string) bool {
	return slices.Contains([]string{".md", ".markdown", ".mdown"}, strings.ToLower(path.Ext(name)))
}

// editedNote is the template data of the form that edits a note.
type editedNote struct {
	Path    string
	New     bool
	Version uint64
	Content string
	unsaved
	// Conflict has the differences between the version that was read and the newest one.
	Conflict []span
	Newest   string // newest text, set if the version that was read is not available any more
	Deleted  bool   // the note was deleted meanwhile
}

func (p *Page) noteEditForm(r *request) (*view, error) {
	if err := r.mayEdit(); err != nil {
		return nil, err
	}
	at := r.get("path")
	if at == "" {
		e := &editedNote{New: true}
		if folder := r.get("folder"); folder != "" {
			e.Path = folder + "/"
		}
		return &view{template: "note-edit", title: "New note", data: e}, nil
	}
	n, err := r.st.Notes().Read(r.ctx, at)
	if err != nil {
		return nil, err
	}
	if !n.Text || len(n.Content) > MostEdited {
		return nil, &refusal{http.StatusRequestEntityTooLarge,
			"the page can edit only text notes of at most " + human.Bytes(MostEdited), "edit the file in notes/"}
	}
	return &view{template: "note-edit", title: "Edit " + shortened(visible(at), 60),
		data: &editedNote{Path: at, Version: n.Version, Content: string(n.Content)}}, nil
}

func (p *Page) noteEdit(r *request) (*view, error) {
	content, err := r.content()
	if err != nil {
		return nil, err
	}
	e := &editedNote{Path: r.get("path"), Content: content, New: r.get("new") != ""}
	if e.New {
		e.Path = strings.TrimSpace(e.Path)
	}
	e.Version, _ = strconv.ParseUint(r.get("version"), 10, 64) // 0: the note does not exist yet
	i, err := r.st.Notes().Write(r.ctx, e.Path, []byte(e.Content), varve.IfVersion(e.Version))
	v := &view{template: "note-edit", title: "Not saved", data: e}
	switch {
	case errors.Is(err, varve.ErrConflict):
		return p.noteConflict(r, e, v)
	case err != nil && fatal(err):
		return nil, err
	case err != nil:
		e.unsaved, v.status = because(err)
		return v, nil
	}
	return savedNote(i), nil
}

func savedNote(i varve.NoteInfo) *view {
	return &view{said: "Saved as version " + strconv.FormatUint(i.Version, 10), goTo: link("note", "path", i.Path)}
}

// noteConflict shows the form again after another writer has changed the note, or has created a note at the path. If
// the note already has the entered text, noteConflict reports success: the form was sent twice, and the first answer
// was lost.
func (p *Page) noteConflict(r *request, e *editedNote, v *view) (*view, error) {
	v.status = http.StatusConflict
	now, err := r.st.Notes().Read(r.ctx, e.Path)
	switch {
	case err == nil && string(now.Content) == e.Content:
		return savedNote(now.NoteInfo), nil
	case err == nil && e.New:
		e.Problem, e.Next = "a note already exists at this path", "choose another path, or edit that note"
		return v, nil
	case err == nil:
		if before, err := r.st.Notes().GetAt(r.ctx, e.Path, e.Version); err == nil {
			e.Conflict = compareText(string(before.Document), string(now.Content))
		} else {
			e.Newest = visible(human.Head(string(now.Content), MostShown))
		}
		e.Version = now.Version
	case errors.Is(err, varve.ErrNotFound):
		e.Deleted, e.Version = true, 0
	case fatal(err):
		return nil, err
	default:
		e.unsaved, v.status = because(err)
		return v, nil
	}
	e.Problem, e.Next = "another writer has changed the note since you began to edit",
		"your text is below: add what you want to keep of that writer's version; Save then replaces that version"
	if e.Deleted {
		e.Problem, e.Next = "the note was deleted since you began to edit", "Save creates the note again"
	}
	return v, nil
}

func (p *Page) noteForget(r *request) (*view, error) {
	version, err := strconv.ParseUint(r.get("version"), 10, 64)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "the form has no valid version number", "open the note again"}
	}
	if err := r.st.Notes().Delete(r.ctx, r.get("path"), varve.IfVersion(version)); err != nil {
		return nil, err
	}
	return &view{said: "Forgotten; a version can be restored", goTo: link("note", "path", r.get("path"))}, nil
}

// noteRestore makes an earlier version of a note its newest version.
func (p *Page) noteRestore(r *request) (*view, error) {
	at := r.get("path")
	n, err := strconv.ParseUint(r.get("version"), 10, 64)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "the form has no valid version number", "open the note again"}
	}
	v, err := r.st.Notes().GetAt(r.ctx, at, n)
	if err != nil {
		return nil, err
	}
	if v.Deleted || v.Redacted {
		return nil, &refusal{http.StatusBadRequest, "this version has no text", "choose another version"}
	}
	i, err := r.st.Notes().Write(r.ctx, at, v.Document)
	if err != nil {
		return nil, err
	}
	return &view{said: "Restored as version " + strconv.FormatUint(i.Version, 10), goTo: link("note", "path", at)},
		nil
}

func (p *Page) noteDiff(r *request) (*view, error) {
	at := r.get("path")
	from, to, err := r.span()
	if err != nil {
		return nil, err
	}
	a, err := r.st.Notes().GetAt(r.ctx, at, from)
	if err != nil {
		return nil, err
	}
	b, err := r.st.Notes().GetAt(r.ctx, at, to)
	if err != nil {
		return nil, err
	}
	d := &compared{ID: at, From: a, To: b, Note: true, Difference: &difference{}}
	if note.IsText(a.Document) && note.IsText(b.Document) {
		d.Difference.Text = compareText(string(a.Document), string(b.Document))
	} else if string(a.Document) != string(b.Document) {
		d.Difference.Text = []span{{"the two versions differ, but cannot be compared: they are not text", "cut"}}
	}
	d.From.Document, d.To.Document = nil, nil
	return &view{template: "diff", title: "Difference", data: d}, nil
}
