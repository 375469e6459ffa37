package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/memstore"
)

// shownMemory is the template data of one memory.
type shownMemory struct {
	ID         string
	Memory     varve.Memory
	Text       string   // the part of the content that is shown, from the beginning
	Cut        bool     // the content is longer than Text
	Deleted    *version // set if the memory is deleted, or expired and not yet deleted
	Expired    bool
	Facts      []fact
	Metadata   []fact
	Tags       []string
	Assemblies []varve.Assembly
	Versions   []version // versions of the memory, the newest first
	Older      bool      // there were versions before those in Versions
	Unread     []string  // errors of versions that cannot be read
	Writer     varve.Writer
	MayEdit    bool // the memory is small enough to be edited on the page
	Embedded   bool
	last       varve.Version // the newest version that is not a deletion
}

// fact is a name and a value that a view shows.
type fact struct {
	Name, Value string
	Time        time.Time // set instead of Value if the value is a time; it is shown with its age
	Link        string
}

// version is a version in the history of a memory.
type version struct {
	varve.Version
	Newest bool
	Before uint64 // the nearest earlier version in the list that has a document; 0: none
}

// mostVersions is the maximum number of versions that the page shows in a history.
const mostVersions = 200

func (p *Page) memory(r *request) (*view, error) {
	id := r.get("id")
	d := &shownMemory{ID: id}
	m, err := r.st.Get(r.ctx, id)
	missing := errors.Is(err, varve.ErrNotFound)
	if err != nil && !missing && fatal(err) {
		return nil, err
	}
	d.versions(r, r.st.History(r.ctx, id))
	switch {
	case missing && len(d.Versions) == 0:
		return nil, err
	case missing:
		d.Deleted = &d.Versions[0]
		if m, derr := d.last.Decode(); d.last.Document != nil && derr == nil {
			d.Memory = m
			d.Expired = !d.Deleted.Deleted && !m.ExpiresAt.IsZero() && !m.ExpiresAt.After(p.o.Clock())
		}
	case err != nil: // damaged: the history is shown, with the reason
		d.Unread = append(d.Unread, err.Error())
	default:
		d.Memory = m
		d.Writer = r.st.Admin().WriterOf(m.By, m.Version)
		for a, err := range r.st.Assemblies().Containing(r.ctx, id) {
			if err != nil {
				d.Unread = append(d.Unread, err.Error())
				break
			}
			if len(d.Assemblies) == MostRows {
				break
			}
			d.Assemblies = append(d.Assemblies, a)
		}
	}
	d.last = varve.Version{}
	d.describe(r.get("all") != "")
	return &view{template: "memory", title: shortened(visible(id), 60), data: d}, nil
}

// versions reads the history of the memory and sets the fields of d that describe it. It keeps the document of only
// one version, in d.last: the newest version that has a document. history yields the versions, the oldest first.
func (d *shownMemory) versions(r *request, history func(func(varve.Version, error) bool)) {
	for v, err := range history {
		if err != nil {
			if !errors.Is(err, varve.ErrNotFound) && len(d.Unread) < MostRows {
				d.Unread = append(d.Unread, err.Error())
			}
			continue
		}
		if len(d.Versions) == 0 && (v.Previous != 0 || v.FromFile || v.Kept) {
			d.Older = true
		}
		if !v.Deleted && !v.Redacted {
			d.last = v
		}
		v.Document = nil
		x := version{Version: v}
		for i := len(d.Versions) - 1; i >= 0 && x.Before == 0; i-- {
			if b := d.Versions[i]; !b.Deleted && !b.Redacted {
				x.Before = b.LSN
			}
		}
		if d.Versions = append(d.Versions, x); len(d.Versions) > mostVersions {
			d.Versions, d.Older = d.Versions[1:], true
		}
	}
	slices.Reverse(d.Versions)
	if len(d.Versions) > 0 {
		d.Versions[0].Newest = true
	}
}

// describe sets the fields of d that are computed from d.Memory. If all is false, it shortens the text to MostShown
// bytes.
func (d *shownMemory) describe(all bool) {
	m := &d.Memory
	text := m.Content
	if !all {
		text = human.Head(text, MostShown)
	}
	d.Text, d.Cut = visible(text), len(text) < len(m.Content)
	d.MayEdit = len(m.Content) <= MostEdited && len(metadataText(m.Metadata)) <= MostEdited
	d.Tags, d.Embedded = tagsOf(m), len(m.Embedding) > 0
	add := func(name, value, to string) {
		if value != "" {
			d.Facts = append(d.Facts, fact{Name: name, Value: visible(value), Link: to})
		}
	}
	when := func(name string, t time.Time) {
		if !t.IsZero() {
			d.Facts = append(d.Facts, fact{Name: name, Time: t})
		}
	}
	add("session", m.Session(), link("list", "session", m.Session()))
	add("category", m.Category(), link("list", "category", m.Category()))
	add("key", m.Key(), "")
	when("happened", m.Timestamp)
	when("created", m.CreatedAt)
	when("updated", m.UpdatedAt)
	when("expires", m.ExpiresAt)
	if m.QuickRecalScore != 0 {
		add("importance", strconv.FormatFloat(m.QuickRecalScore, 'g', 4, 64), "")
	}
	if m.AccessCount > 0 {
		add("accesses", strconv.FormatInt(m.AccessCount, 10), "")
	}
	when("last access", m.LastAccessTime)
	if n := len(m.Embedding); n > 0 {
		add("embedding", fmt.Sprintf("%d dimensions", n), "")
	}
	add("text", human.Bytes(int64(len(m.Content))), "")
	if m.Version != 0 {
		add("version", strconv.FormatUint(m.Version, 10), "")
	}
	shown := map[string]any{}
	for name, value := range m.Metadata {
		switch name {
		case "session_id", "tags", "category", "key":
		default:
			shown[name] = value
		}
	}
	d.Metadata = facts(shown)
}

// facts returns the members of the metadata: at most MostRows members, with about MostShown bytes in total.
func facts(metadata map[string]any) (list []fact) {
	left := MostShown
	for i, name := range sortedNames(metadata) {
		if len(list) == MostRows || left <= 0 {
			return append(list, fact{Name: "…", Value: "and " + strconv.Itoa(len(metadata)-i) + " more"})
		}
		value := human.Head(valueText(metadata[name]), left)
		left -= len(value) + len(name)
		list = append(list, fact{Name: visible(human.Head(name, listText)), Value: visible(value)})
	}
	return list
}

func sortedNames(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// valueText returns a JSON value as text. A string is returned without quotes.
func valueText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// text shows a memory with its whole text, however long the text is.
func (p *Page) text(r *request) (*view, error) {
	r.Form.Set("all", "1")
	return p.memory(r)
}

// edited is the template data of the form that edits a memory.
type edited struct {
	ID       string // id of the memory; "": a new memory
	Version  uint64
	Content  string
	Metadata string // metadata as JSON
	Expires  string
	// Conflict has the changes by another writer since the version that was read; nil: there are none.
	Conflict *conflict
	Fresh    string // id for a new memory
	Back     bool   // saving restores the memory, which is deleted
	unsaved
}

// conflict is a change that another writer made while the memory was being edited.
type conflict struct {
	Now    varve.Memory
	Writer varve.Writer
	// differences between the version that was read and the newest one; nil: the version that was read is not
	// available
	Changes *difference
	Text    string // newest text, set if Changes is nil
	Deleted bool
}

func (p *Page) editForm(r *request) (*view, error) {
	if err := r.mayEdit(); err != nil {
		return nil, err
	}
	id := r.get("id")
	if id == "" {
		fresh, err := memstore.NewID(p.o.Clock(), nil)
		if err != nil {
			return nil, err
		}
		return &view{template: "edit", title: "New memory", data: &edited{Metadata: "{}", Fresh: fresh}}, nil
	}
	m, err := r.st.Get(r.ctx, id)
	if err != nil {
		return nil, err
	}
	if size := max(len(m.Content), len(metadataText(m.Metadata))); size > MostEdited {
		return nil, &refusal{http.StatusRequestEntityTooLarge,
			fmt.Sprintf("the memory has %s, but the page can edit at most %s", human.Bytes(int64(size)),
				human.Bytes(MostEdited)), "edit the file, or use memctl edit"}
	}
	e := &edited{ID: id, Version: m.Version, Content: m.Content, Metadata: metadataText(m.Metadata)}
	if !m.ExpiresAt.IsZero() {
		e.Expires = m.ExpiresAt.Format(time.RFC3339Nano)
	}
	return &view{template: "edit", title: "Edit " + shortened(visible(id), 60), data: e}, nil
}

func metadataText(m map[string]any) string {
	if len(m) == 0 {
		return "{}"
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(m); err != nil {
		return "{}"
	}
	return strings.TrimRight(b.String(), "\n")
}

// entered reads the form that edits a memory. If a value is invalid, entered returns the error together with the
// entered values. It returns no values if the text or the version cannot be read.
func (p *Page) entered(r *request) (*edited, *varve.Memory, error) {
	content, err := r.content()
	if err != nil {
		return nil, nil, err
	}
	e := &edited{ID: r.get("id"), Fresh: r.get("fresh"), Content: content, Metadata: r.get("metadata"),
		Expires: strings.TrimSpace(r.get("expires"))}
	if e.ID != "" {
		if e.Version, err = strconv.ParseUint(r.get("version"), 10, 64); err != nil {
			return nil, nil, &refusal{http.StatusBadRequest, "the form has no valid version number",
				"open the memory again"}
		}
	}
	m := &varve.Memory{ID: e.ID, Content: content}
	d := json.NewDecoder(strings.NewReader(e.Metadata))
	d.UseNumber()
	if err := d.Decode(&m.Metadata); err != nil {
		return e, m, &refusal{http.StatusBadRequest, "metadata is not a JSON object: " + err.Error(),
			`write an object such as {"session_id": "trip", "tags": ["travel"]}, or {}`}
	}
	if d.More() {
		return e, m, &refusal{http.StatusBadRequest, "metadata has text after the JSON object",
			"remove everything after the last brace"}
	}
	if e.Expires != "" {
		if m.ExpiresAt, err = time.Parse(time.RFC3339Nano, e.Expires); err != nil {
			return e, m, &refusal{http.StatusBadRequest, "expires is not a time",
				"write a time such as 2027-01-31T12:00:00Z, or leave it empty"}
		}
	}
	return e, m, nil
}

// unsaved is the reason why a form was not saved, with advice.
type unsaved struct {
	Problem, Next string
	Unknown       bool // it is unknown whether the form was saved
}

// because returns the reason why a form was not saved, as it is shown above the form, and the HTTP status of the
// answer.
func because(err error) (unsaved, int) {
	status, next := remedyOf(err)
	return unsaved{err.Error(), next, errors.Is(err, varve.ErrOutcomeUnknown)}, status
}

// unsavedView returns a view of the form with the entered values and the reason why the values were not saved.
func unsavedView(e *edited, err error) *view {
	v := &view{template: "edit", title: "Not saved", data: e}
	e.unsaved, v.status = because(err)
	return v
}

// sameAs reports whether the memory m has the same text, expiry time and metadata as the entered values.
func (e *edited) sameAs(m, entered *varve.Memory) bool {
	return m.Content == entered.Content && m.ExpiresAt.Equal(entered.ExpiresAt) &&
		metadataText(m.Metadata) == metadataText(entered.Metadata)
}

func saved(m *varve.Memory) *view {
	return &view{said: "Saved as version " + strconv.FormatUint(m.Version, 10), goTo: link("memory", "id", m.ID)}
}

func (p *Page) edit(r *request) (*view, error) {
	e, entered, err := p.entered(r)
	if err != nil {
		if e == nil {
			return nil, err
		}
		return unsavedView(e, err), nil
	}
	if r.get("back") != "" { // the memory was deleted while the form was open, and the person has seen that
		back, err := r.st.Undelete(r.ctx, e.ID)
		if err != nil && !errors.Is(err, varve.ErrInvalid) && !errors.Is(err, varve.ErrConflict) { // the memory exists
			if fatal(err) {
				return nil, err
			}
			e.Back = true
			return unsavedView(e, err), nil
		}
		e.Version = back.Version
	}
	m, err := r.st.Update(r.ctx, e.ID, func(m *varve.Memory) error {
		if e.sameAs(m, entered) {
			return varve.ErrSkip
		}
		m.Content = e.Content
		if metadataText(m.Metadata) != metadataText(entered.Metadata) {
			m.Metadata = entered.Metadata
		}
		m.ExpiresAt = entered.ExpiresAt
		return nil
	}, varve.IfVersion(e.Version))
	switch {
	case errors.Is(err, varve.ErrConflict), errors.Is(err, varve.ErrNotFound):
		return p.conflicting(r, e, entered)
	case err != nil && fatal(err):
		return nil, err
	case err != nil:
		return unsavedView(e, err), nil
	}
	return saved(&m), nil
}

// conflicting shows the form again after another writer has changed the memory. If the person then saves the form a
// second time, the entered values replace the version of that writer, but no later version. If the memory already has
// the entered values, conflicting reports success: the form was sent twice, and the first answer was lost.
func (p *Page) conflicting(r *request, e *edited, entered *varve.Memory) (*view, error) {
	c := &conflict{}
	m, err := r.st.Get(r.ctx, e.ID)
	if err != nil {
		if fatal(err) {
			return nil, err
		}
		if c.Deleted = errors.Is(err, varve.ErrNotFound); !c.Deleted {
			return unsavedView(e, err), nil
		}
		e.Conflict, e.Back = c, true
		return &view{template: "edit", title: "Conflict", status: http.StatusConflict, data: e}, nil
	}
	if e.sameAs(&m, entered) {
		return saved(&m), nil
	}
	c.Now, c.Writer = m, r.st.Admin().WriterOf(m.By, m.Version)
	if before, err := r.st.GetAt(r.ctx, e.ID, e.Version); err == nil {
		if old, err := before.Decode(); err == nil {
			c.Changes = compare(&old, &m)
		}
	}
	if c.Changes == nil {
		c.Text = visible(human.Head(m.Content, MostShown))
	}
	e.Conflict, e.Version = c, m.Version
	return &view{template: "edit", title: "Conflict", status: http.StatusConflict, data: e}, nil
}

// create stores a new memory. The form contains the new id, so that a form that is sent twice creates only one memory.
func (p *Page) create(r *request) (*view, error) {
	r.Form.Set("id", "")
	e, entered, err := p.entered(r)
	if err == nil && strings.TrimSpace(e.Content) == "" {
		err = &refusal{http.StatusBadRequest, "the text is empty", "enter the text of the memory"}
	}
	if err != nil {
		if e == nil {
			return nil, err
		}
		return unsavedView(e, err), nil
	}
	entered.ID = e.Fresh
	m, err := r.st.Put(r.ctx, *entered, varve.IfAbsent())
	switch {
	case errors.Is(err, varve.ErrConflict):
		e.ID = e.Fresh
		return p.conflicting(r, e, entered)
	case err != nil && fatal(err):
		return nil, err
	case err != nil:
		return unsavedView(e, err), nil
	}
	return &view{said: "Remembered", goTo: link("memory", "id", m.ID)}, nil
}

// forget deletes memories, which can be restored later.
func (p *Page) forget(r *request) (*view, error) {
	ids, err := r.ids()
	if err != nil {
		return nil, err
	}
	if version := r.get("version"); version != "" && len(ids) == 1 {
		n, err := strconv.ParseUint(version, 10, 64)
		if err != nil {
			return nil, &refusal{http.StatusBadRequest, "the form has no valid version number", "open the memory again"}
		}
		if err := r.st.Delete(r.ctx, ids[0], varve.IfVersion(n)); err != nil {
			return nil, err
		}
		return &view{said: `Forgotten; "Bring back" undoes it`, goTo: link("memory", "id", ids[0])}, nil
	}
	n := 0
	err = r.st.Transact(r.ctx, func(tx *varve.Tx) error {
		n = 0
		for _, id := range ids {
			err := tx.Delete(id)
			if err != nil && !errors.Is(err, varve.ErrNotFound) {
				return err
			}
			if err == nil {
				n++
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	said := "Forgot " + count(n, "memory", "memories")
	if gone := len(ids) - n; gone > 0 {
		said += "; " + count(gone, "was", "were") + " deleted before"
	}
	return &view{said: said + "; you can undo this in the log", goTo: link("log")}, nil
}

func (p *Page) undelete(r *request) (*view, error) {
	id := r.get("id")
	if _, err := r.st.Undelete(r.ctx, id); err != nil {
		return nil, err
	}
	return &view{said: "Brought back", goTo: link("memory", "id", id)}, nil
}

// restore makes an earlier version of a memory its newest version.
func (p *Page) restore(r *request) (*view, error) {
	id := r.get("id")
	n, err := strconv.ParseUint(r.get("version"), 10, 64)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "the form has no valid version number", "open the memory again"}
	}
	m, err := r.st.Revert(r.ctx, id, n)
	if err != nil {
		return nil, err
	}
	return &view{said: fmt.Sprintf("Restored version %d as version %d", n, m.Version), goTo: link("memory", "id",
		id)}, nil
}
