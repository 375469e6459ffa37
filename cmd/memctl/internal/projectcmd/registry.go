package projectcmd

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/project"
)

// Record is the content of a file of the registry: a project with its name and place.
type Record struct {
	Project string `json:"project"`
	Name    string `json:"name"`
	Place   string `json:"place,omitempty"`

	file string
}

// Registry stores the ids of projects in the user's state folder.
type Registry struct{ dir string }

// NewRegistry returns the registry in state, the user's state folder. state is "" if the user has no such folder.
func NewRegistry(state string) *Registry {
	if state == "" {
		return &Registry{}
	}
	return &Registry{filepath.Join(state, "projects")}
}

// None is the name that selects no project: only the shared part of the store.
const None = "none"

// mostName is the maximum length of the name of a project in bytes.
const mostName = 128

// unexpanded matches a variable that a shell or a client should have replaced by its value.
var unexpanded = regexp.MustCompile(`\$\{[^}]*\}|(^|[/\\])\$[A-Z_][A-Z0-9_]*($|[/\\])|` +
	`%[A-Za-z_]\w*%|\{\{.*\}\}|^~($|[/\\])`)

// Unexpanded returns the first variable in s that was not replaced by its value, or "" if s has no such variable.
func Unexpanded(s string) string { return strings.Trim(unexpanded.FindString(s), `/\`) }

func checkName(name string) error {
	bad := func(why string) error {
		return &varve.FieldError{Field: "project", Value: human.Quote(name), Err: fmt.Errorf("%w: %s", varve.ErrInvalid, why)}
	}
	switch v := Unexpanded(name); {
	case v != "":
		return bad(fmt.Sprintf("the variable %s was not expanded: write the name itself", v))
	case strings.TrimSpace(name) == "" || name != strings.TrimSpace(name):
		return bad("the name is empty, or begins or ends with a space")
	case len(name) > mostName:
		return bad(fmt.Sprintf("the name is longer than %d bytes", mostName))
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }):
		return bad("the name has control characters")
	case strings.ContainsAny(name, `/\`):
		return bad("must be a name, not a path; without a name, the folder determines the project")
	}
	return nil
}

func file(kind string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return fmt.Sprintf("%s-%x.json", kind, sum[:16])
}

// get reads the record in the file with this name. If the file does not exist, the error matches fs.ErrNotExist.
func (r *Registry) get(name string) (Record, error) {
	var rec Record
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(b, &rec); err != nil || !project.IsID(rec.Project) {
		return rec, fmt.Errorf("%s is not a record of a project: %w → remove the file, and assign the project again "+
			"with memctl project move", filepath.Join(r.dir, name), varve.ErrInvalid)
	}
	rec.file = name
	return rec, nil
}

// make returns the record in the file with this name. If the file does not exist, make writes rec to it and returns
// rec. If several processes do this at once, all of them return the record of the first one.
func (r *Registry) make(name string, rec Record) (Record, error) {
	if r.dir == "" {
		return rec, fmt.Errorf("%w: there is no folder for the ids of projects → set XDG_STATE_HOME, or serve without a "+
			"project: --project %s", varve.ErrInvalid, None)
	}
	if was, err := r.get(name); !errors.Is(err, fs.ErrNotExist) {
		return was, err
	}
	if rec.Project == "" {
		var random [16]byte
		if _, err := rand.Read(random[:]); err != nil {
			return rec, err
		}
		rec.Project = project.NewID(random)
	}
	temp, err := r.write(&rec)
	if err != nil {
		return rec, fmt.Errorf("storing the id of project %s: %w", human.Quote(rec.Name), err)
	}
	defer os.Remove(temp)
	target := filepath.Join(r.dir, name)
	if err := os.Link(temp, target); err == nil {
		return rec, nil
	} else if !errors.Is(err, fs.ErrExist) { // a file system without links
		if err := os.Rename(temp, target); err != nil {
			return rec, err
		}
	}
	return r.get(name)
}

// set replaces the record in the file with this name.
func (r *Registry) set(name string, rec Record) error {
	temp, err := r.write(&rec)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(r.dir, name)); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return nil
}

func (r *Registry) write(rec *Record) (temp string, err error) {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return "", err
	}
	b, err := json.Marshal(rec)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(r.dir, "new-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// OfPlace returns the project of a place. If the place has no project, OfPlace creates one.
func (r *Registry) OfPlace(place string) (Record, error) {
	return r.make(file("place", place), Record{Name: nameOf(place), Place: place})
}

// nameOf returns the name by which users know a place: the name of its folder.
func nameOf(place string) string {
	if base := filepath.Base(place); base != ".git" {
		return strings.TrimSuffix(base, ".git")
	}
	return filepath.Base(filepath.Dir(place))
}

// NotJoinedError means that a folder uses the name of a project that was made for another folder, and that no user has
// confirmed this with memctl project join.
type NotJoinedError struct{ Name, Place, First string }

func (e *NotJoinedError) Error() string {
	return fmt.Sprintf("project %s was made for %s, and a user must confirm that %s may use this project",
		human.Quote(e.Name),
		orNowhere(e.First), orNowhere(e.Place))
}

// Unwrap returns varve.ErrInvalid.
func (e *NotJoinedError) Unwrap() error { return varve.ErrInvalid }

func orNowhere(place string) string {
	if place == "" {
		return "a folder outside any repository"
	}
	return place
}

// OfName returns the project with this name, for use in the folder place. If no project has this name, OfName creates
// one for place. If the project was made for another folder, and place was not joined to the project, the error is a
// *NotJoinedError.
func (r *Registry) OfName(name, place string) (Record, error) {
	if err := checkName(name); err != nil {
		return Record{}, err
	}
	fresh := Record{Name: name, Place: place}
	rec, err := r.make(file("name", name), fresh)
	if err != nil {
		return rec, err
	}
	if rec.Place == place {
		return rec, nil
	}
	if join, err := r.get(file("join", name, place)); err == nil && join.Project == rec.Project {
		return rec, nil
	}
	return Record{}, &NotJoinedError{name, place, rec.Place}
}

// Join records that the folder at place may use the project with this name.
func (r *Registry) Join(name, place string) (Record, error) {
	rec, err := r.get(file("name", name))
	if errors.Is(err, fs.ErrNotExist) {
		return rec, fmt.Errorf("project %s: %w", human.Quote(name), varve.ErrNotFound)
	}
	if err != nil {
		return rec, err
	}
	rec.Place = place
	return rec, r.set(file("join", name, place), rec)
}

// All returns all records of the registry, sorted by name and file. If the registry does not exist or the user may not
// read it, All returns no records and no error.
func (r *Registry) All() ([]Record, error) {
	names, err := os.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || r.dir == "" {
		return nil, nil
	}
	var all []Record
	for _, e := range names {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		if rec, err := r.get(e.Name()); err == nil {
			all = append(all, rec)
		}
	}
	slices.SortStableFunc(all, func(a, b Record) int {
		return strings.Compare(a.Name+"\x00"+a.file, b.Name+"\x00"+b.file)
	})
	return all, err
}

// Find returns the records of the project whose id or name is idOrName. If idOrName is an id without a record,
// Find returns one record, in which idOrName is both the id and the name. The error matches varve.ErrNotFound if
// no project has the name, and varve.ErrInvalid if several projects have it.
func (r *Registry) Find(idOrName string) ([]Record, error) {
	all, err := r.All()
	if err != nil {
		return nil, err
	}
	var found []Record
	for _, rec := range all {
		if rec.Project == idOrName || rec.Name == idOrName {
			found = append(found, rec)
		}
	}
	for _, rec := range found {
		if rec.Project != found[0].Project {
			return nil, fmt.Errorf("several projects are called %s: %w → give the id: %s, %s", human.Quote(idOrName),
				varve.ErrInvalid, found[0].Project, rec.Project)
		}
	}
	if len(found) == 0 {
		if project.IsID(idOrName) {
			return []Record{{Project: idOrName, Name: idOrName}}, nil
		}
		return nil, fmt.Errorf("project %s: %w", human.Quote(idOrName), varve.ErrNotFound)
	}
	return found, nil
}
