package page

import (
	"errors"
	"html/template"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/human"
)

// shownNotes is the data of a folder of notes, or of what a search found in them.
type shownNotes struct {
	Folder string
	Up     []crumb // the folders above
	Rows   []varve.NoteEntry
	Found  []varve.NoteMatch
	Query  string
	More   bool
	Unread []string
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

func (p *Page) notes(r *request) (*view, error) {
	d := &shownNotes{Folder: r.get("folder"), Query: strings.TrimSpace(r.get("q"))}
	d.Up = crumbs(d.Folder)
	note := func(err error) bool {
		d.Unread = append(d.Unread, err.Error())
		return len(d.Unread) > MostRows
	}
	if d.Query != "" {
		words, err := regexp.Compile("(?i)" + regexp.QuoteMeta(d.Query))
		if err != nil {
			return nil, err
		}
		for m, err := range r.st.Notes().Grep(r.ctx, d.Folder, words) {
			if err != nil {
				if fatal(err) || note(err) {
					return nil, err
				}
				continue
			}
			if d.More = len(d.Found) == 4*MostRows; d.More {
				break
			}
			m.Text = shortened(visible(m.Text), listText)
			d.Found = append(d.Found, m)
		}
		return &view{template: "notes", title: "Notes", data: d}, nil
	}
	for e, err := range r.st.Notes().List(r.ctx, d.Folder, 1) {
		if err != nil {
			if fatal(err) || note(err) {
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

// shownNote is the data of a note.
type shownNote struct {
	varve.NoteInfo
	Up       []crumb
	Name     string
	Front    string        // front matter, as it is
	Rendered template.HTML // of Markdown
	Text     string        // of anything else that is text
	Binary   bool
	Cut      bool
	Deleted  bool
	MayEdit  bool
	Metadata []fact
	Versions []version
	Older    bool
	Unread   []string
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
		d.Path = at
		n.Content, n.Text = h.last.Document, isText(h.last.Document)
	}
	up := crumbs(d.Path)
	d.Up, d.Name = up[:len(up)-1], up[len(up)-1].Name
	d.MayEdit = n.Text && len(n.Content) <= MostEdited
	text := human.Head(string(n.Content), MostShown)
	if r.get("all") != "" {
		text = string(n.Content)
	}
	d.Cut = len(text) < len(n.Content)
	switch {
	case !n.Text:
		d.Binary = true
	case isMarkdown(d.Path) && renderable(text):
		front, body := frontMatter(text)
		d.Front = visible(front)
		if d.Rendered, err = markdown(body, path.Dir(d.Path)); err != nil {
			return nil, err
		}
	default:
		d.Text = visible(text)
	}
	for _, name := range sortedNames(n.Properties.Metadata) {
		d.Metadata = append(d.Metadata, fact{Name: visible(name),
			Value: visible(valueText(n.Properties.Metadata[name]))})
	}
	return &view{template: "note", title: shortened(d.Name, 60), data: d}, nil
}

func isMarkdown(name string) bool {
	return slices.Contains([]string{".md", ".markdown", ".mdown"}, strings.ToLower(path.Ext(name)))
}

func isText(b []byte) bool {
	return !strings.ContainsRune(string(b), 0) && strings.ToValidUTF8(string(b), "\uFFFD") == string(b)
}

// frontMatter cuts a text into the front matter, without its lines of dashes, and the rest.
func frontMatter(s string) (front, body string) {
	rest, ok := strings.CutPrefix(s, "---\n")
	if !ok {
		return "", s
	}
	front, body, ok = strings.Cut(rest, "\n---\n")
	if !ok {
		return "", s
	}
	return front, body
}

// editedNote is the data of a form that edits a note.
type editedNote struct {
	Path    string
	New     bool
	Version uint64
	Content string
	Problem string
	// Conflict is what has changed since the version that was read.
	Conflict []span
	Newest   string // the newest text, if the version that was read cannot be read
	Deleted  bool   // it was deleted meanwhile
}

func (p *Page) noteEditForm(r *request) (*view, error) {
	if err := r.mayWrite(); err != nil {
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
			"the page edits notes of text, of at most " + human.Bytes(MostEdited), "edit the file in notes/"}
	}
	return &view{template: "note-edit", title: "Edit " + shortened(visible(at), 60),
		data: &editedNote{Path: at, Version: n.Version, Content: string(n.Content)}}, nil
}

func (p *Page) noteEdit(r *request) (*view, error) {
	e := &editedNote{Path: strings.TrimSpace(r.get("path")), Content: lines(r.get("content")),
		New: r.get("new") != ""}
	e.Version, _ = strconv.ParseUint(r.get("version"), 10, 64) // 0: there is none
	i, err := r.st.Notes().Write(r.ctx, e.Path, []byte(e.Content), varve.IfVersion(e.Version))
	switch {
	case errors.Is(err, varve.ErrConflict) && e.New:
		e.Problem = "there is a note at this path: choose another one"
	case errors.Is(err, varve.ErrConflict):
		now, rerr := r.st.Notes().Read(r.ctx, e.Path)
		if e.Deleted = errors.Is(rerr, varve.ErrNotFound); rerr != nil && !e.Deleted {
			if fatal(rerr) {
				return nil, rerr
			}
			e.Problem = rerr.Error()
			break
		}
		if e.Deleted {
			e.Version = 0
		} else {
			if v, err := r.st.Notes().GetAt(r.ctx, e.Path, e.Version); err == nil {
				e.Conflict = compareText(string(v.Document), string(now.Content))
			} else {
				e.Newest = visible(human.Head(string(now.Content), MostShown))
			}
			e.Version = now.Version
		}
		e.Problem = "the note was changed by another writer meanwhile"
	case err != nil && fatal(err):
		return nil, err
	case err != nil:
		e.Problem = err.Error()
	default:
		return &view{said: "Saved as version " + strconv.FormatUint(i.Version, 10), goTo: link("note", "path",
			i.Path)}, nil
	}
	return &view{template: "note-edit", title: "Not saved", status: http.StatusConflict, data: e}, nil
}

func (p *Page) noteForget(r *request) (*view, error) {
	version, err := strconv.ParseUint(r.get("version"), 10, 64)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "the form names no version", "open the note again"}
	}
	if err := r.st.Notes().Delete(r.ctx, r.get("path"), varve.IfVersion(version)); err != nil {
		return nil, err
	}
	return &view{said: "Forgotten; a version can be restored", goTo: link("note", "path", r.get("path"))}, nil
}

// noteRestore writes a version of a note again, as its newest one.
func (p *Page) noteRestore(r *request) (*view, error) {
	at := r.get("path")
	n, err := strconv.ParseUint(r.get("version"), 10, 64)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "the form names no version", "open the note again"}
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
	if isText(a.Document) && isText(b.Document) {
		d.Difference.Text = compareText(string(a.Document), string(b.Document))
	} else if string(a.Document) != string(b.Document) {
		d.Difference.Text = []span{{"the bytes differ, and are no text", "cut"}}
	}
	d.From.Document, d.To.Document = nil, nil
	return &view{template: "diff", title: "Difference", data: d}, nil
}
