package varve_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/varve-db/varve/internal/proofs"
)

const module = "github.com/varve-db/varve"

// order lists the packages from the bottom up. A package imports only packages that are above it in this list; a
// package below an entry belongs to that entry.
var order = []string{
	"internal/yield",
	"internal/proofs",  // for tests
	"internal/scratch", // for tests
	"internal/acklog",  // for tests
	"internal/human",
	"internal/diff",
	"internal/sniff",
	"internal/timearg",
	"errs",
	"writer",
	"internal/refcount",
	"internal/vfs",
	"internal/meter",
	"internal/writerfile",
	"internal/purgefile",
	"internal/jsondoc",
	"internal/docfile",
	"internal/record",
	"internal/note",
	"internal/jsonskip",
	"internal/text",
	"internal/filter",
	"internal/words/analyzer",
	"internal/words/query",
	"internal/words/bitset",
	"internal/words/order",
	"internal/words/build",
	"internal/words",
	"internal/words/rows",
	"internal/words/narrow",
	"segment",
	"internal/forge",
	"wal/page",
	"wal/past",
	"wal",
	"remote",
	"remote/remotetest", // for tests
	"remote/dir",
	"remote/sealed",
	"remote/sender",
	"index",
	"memstore",
	"internal/template",
	"internal/graph",
	"assembly",
	"vector",
	"internal/places",
	"internal/kind",
	"internal/env",
	"internal/settings",
	"working",
	"internal/state",
	"internal/worklog",
	"repair",
	"internal/view",
	"internal/repairs/past",
	"internal/erase/trace",
	"internal/copy/pack",
	"internal/copy/backup",
	"internal/copy/offsite",
	"internal/copy/migrate",
	"internal/formats",
	"internal/repairs/verify",
	"internal/repairs/diagnose",
	"internal/repairs/heal",
	"internal/engine",
	"internal/diskspace",
	"internal/view/counts",
	"internal/view/vectors",
	"internal/view/words",
	"internal/view/meanings",
	"internal/commit",
	"internal/views",
	"internal/rebuild",
	"internal/flush",
	"internal/scopes",
	"internal/parts", // for tests
	"internal/adopt",
	"internal/fswatch",
	"internal/embedding",
	"internal/history",
	"internal/undo",
	"internal/notes",
	"internal/search",
	"internal/retention",
	"internal/erase/purge",
	"internal/store",
	"internal/storetest", // for tests
	"",                   // the root
	"internal/fixture",   // for tests
	"importer",
	"internal/queryargs",
	"internal/project",
	"remote/s3",
	"remote/postgres",
	"memorytool",
	"served",
	"mcpserver",
	"memorystores",
	"memorystores/conformance",
	"server",
	"server/page",
	"metrics",
	"cmd/memctl/internal/evil", // for tests
	"cmd/memctl/internal/span",
	"cmd/memctl/internal/wrap",
	"cmd/memctl/internal/locate",
	"cmd/memctl/internal/place",
	"cmd/memctl/internal/seal",
	"cmd/memctl/internal/cli",
	"cmd/memctl/internal/adopted",
	"cmd/memctl/internal/complete",
	"cmd/memctl/internal/intake",
	"cmd/memctl/internal/manual",
	"cmd/memctl/internal/assemblycmd",
	"cmd/memctl/internal/notecmd",
	"cmd/memctl/internal/workingcmd",
	"cmd/memctl/internal/projectcmd",
	"cmd/memctl/internal/mcpcmd",
	"cmd/memctl/internal/servecmd",
	"cmd/memctl/internal/remotecmd",
	"cmd/memctl/internal/servicecmd",
	"cmd/memctl/internal/upkeep",
	"cmd/memctl/internal/doctorcmd",
	"cmd/memctl",
	"packaging",
	"fuzz",
	"tests",
}

// coreModules are all modules that the core may link, besides the standard library.
var coreModules = []string{
	module,
	"github.com/gofrs/flock",
	"github.com/klauspost/compress",
	"github.com/google/uuid",
	"github.com/cespare/xxhash/v2",
	"github.com/go-json-experiment/json",
	"github.com/maypok86/otter/v2",
	"github.com/fsnotify/fsnotify",
	"github.com/blevesearch/snowballstem",
	"golang.org/x/text",
	"golang.org/x/sys",
	"golang.org/x/sync",
}

var systems = []string{"linux", "darwin", "windows"}

type listed struct {
	ImportPath string
	Dir        string
	Standard   bool
	GoFiles    []string
	Imports    []string
	DepOnly    bool
	Module     *struct{ Path string }
}

// TestCoreLinksNothingElse verifies that the root and everything that it imports link only coreModules.
func TestCoreLinksNothingElse(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for _, goos := range systems {
		for _, p := range list(t, goos, "-deps", ".") {
			if p.ImportPath == "net/http" {
				t.Errorf("%s: the core links net/http", goos) // embedders are the host's choice: package vector/embed
			}
			if p.Standard || p.Module == nil {
				continue
			}
			if !slices.Contains(coreModules, p.Module.Path) {
				t.Errorf("%s: the core links %s of %s", goos, p.ImportPath, p.Module.Path)
			}
		}
	}
}

// TestImportsPointUp verifies that every package imports only packages before it in order.
func TestImportsPointUp(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	unknown := map[string]bool{}
	for _, goos := range systems {
		for _, p := range list(t, goos, "./...") {
			at, ok := rank(p.ImportPath)
			if !ok {
				unknown[p.ImportPath] = true
				continue
			}
			for _, imp := range p.Imports {
				if imp != module && !strings.HasPrefix(imp, module+"/") {
					continue
				}
				if imp == module+"/internal/forge" && !strings.HasPrefix(p.ImportPath, module+"/tests/") {
					t.Errorf("%s: %s imports %s, which only tests may", goos, p.ImportPath, imp)
				}
				if up, ok := rank(imp); ok && up > at {
					t.Errorf("%s: %s has the place of %q in order, and imports %s behind it: if the import is meant, add %q to "+
						"order behind %q, and before what imports it",
						goos, p.ImportPath, order[at], imp, strings.TrimPrefix(p.ImportPath, module+"/"), order[up])
				}
			}
		}
	}
	for path := range unknown {
		t.Errorf("%s has no place: add it to the order", path)
	}
}

// rank returns the place in order of the entry that the package is, or is below. Only listed packages are below the
// root.
func rank(path string) (int, bool) {
	if path == module {
		return slices.Index(order, ""), true
	}
	for rel := strings.TrimPrefix(path, module+"/"); rel != "." && rel != ""; rel = filepath.ToSlash(filepath.Dir(rel)) {
		if i := slices.Index(order, rel); i >= 0 {
			return i, true
		}
	}
	return 0, false
}

// TestStoresFilesAreBelow verifies that the packages that access a store's files do so through vfs, limited by
// vfs.Below where a store, a backup or a migration begins. Other ways to access files follow links.
func TestStoresFilesAreBelow(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	around := regexp.MustCompile(`\b(os\.(Open|OpenFile|OpenRoot|Create|CreateTemp|ReadFile|WriteFile|ReadDir|Mkdir|MkdirAll|MkdirTemp|Remove|RemoveAll|Rename|Stat|Lstat|Link|Symlink|Readlink|Truncate|Chtimes|Chmod|DirFS|CopyFS)|filepath\.(Walk|WalkDir|Glob|EvalSymlinks)|ioutil\.\w+|vfs\.OS)\(`)
	// The places where the file system of the operating system is used.
	begins := map[string]string{
		"options.go": "s.FS = vfs.OS()",
		"backup.go":  "vfs.Only(vfs.OS(), \"\", dir)",

		"remote/dir/dir.go": "o.FS = vfs.OS()",
	}
	// All packages up to the root, except those that are the way to the disk itself and those that only tests use.
	none := []string{"internal/vfs", "internal/forge", "internal/fswatch", "internal/proofs", "internal/scratch",
		"internal/parts", "internal/storetest"}
	below := append(slices.Clone(order[:slices.Index(order, "")]), ".")
	below = slices.DeleteFunc(below, func(dir string) bool { return slices.Contains(none, dir) })
	for _, dir := range below {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for n, line := range strings.Split(string(text), "\n") {
				code, _, _ := strings.Cut(line, "//")
				if around.MatchString(code) && (begins[name] == "" || !strings.Contains(code, begins[name])) {
					t.Errorf("%s:%d goes around vfs.Below: %s", name, n+1, strings.TrimSpace(line))
				}
			}
		}
	}
	// The reasons for other limits than the folder of the store or of the operation.
	more := map[string]string{
		"internal/copy/backup/packed.go": "the file of a backup, which the user named, and which must not be there yet",
		"internal/copy/backup/folder.go": "the folder of a backup, which the user named, and what is made beside it until " +
			"it is complete",
		"internal/copy/offsite/step.go":  "the folder for a fork, beside the new store that the user named",
		"internal/note/adopted.go":       "verify and repair read the record of the folder that they are given",
		"remote/dir/dir.go":              "the folder that the user named for the copy of a store",
		"internal/copy/migrate/state.go": "the note of the folder that the copy of a store on the move names",
	}
	for _, dir := range below {
		names, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(text, []byte("vfs.Below(")) && more[name] == "" && !strings.HasSuffix(name, "_test.go") {
				t.Errorf("%s makes a border of its own by vfs.Below: take the FS of Env, or say here why", name)
			}
		}
	}
	// Each of these sets its limit.
	for name, want := range map[string]string{
		"backup.go":                      "vfs.Only(opt.env.System.FS, opt.StateDir, from, dir)",
		"internal/copy/backup/folder.go": "vfs.Below(vfs.Below(vfs.Below(t.fs, t.dir), part), part+lockSuffix)",
		"options.go":                     "vfs.Only(o.env.System.FS, o.StateDir, dir)",
		"repair.go":                      "vfs.Only(filled.env.System.FS, filled.StateDir, dir)",
		"migrate.go":                     "vfs.Only(filled.env.System.FS, filled.StateDir, from, to)",
	} {
		if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not begin with %s: %v", name, want, err)
		}
	}
}

// TestEveryPackageHasDoc verifies that every package has a doc.go with the package comment.
func TestEveryPackageHasDoc(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for _, p := range list(t, "linux", "./...") {
		if len(p.GoFiles) == 0 {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.Dir, "doc.go"))
		switch {
		case err != nil:
			t.Errorf("%s: %v", p.ImportPath, err)
		case !bytes.HasPrefix(text, []byte("// Package ")) && !bytes.HasPrefix(text, []byte("// Command ")) &&
			!bytes.HasPrefix(text, []byte("/*\n")):
			t.Errorf("%s: doc.go does not begin with the package comment", p.ImportPath)
		}
	}
}

// TestLayoutNamesFiles verifies that the map of the root in its doc.go has a place for each file.
func TestLayoutNamesFiles(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, chart, _ := strings.Cut(string(text), "// # Files\n")
	known := map[string]bool{"doc": true}
	for line := range strings.Lines(chart) {
		if names, ok := strings.CutPrefix(line, "//\t"); ok {
			names, _, _ = strings.Cut(names, "   ") // the descriptions follow
			for _, name := range strings.Fields(names) {
				known[name] = true
			}
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		word, _, _ := strings.Cut(strings.TrimSuffix(file, ".go"), "_")
		if !strings.HasSuffix(file, "_test.go") && !known[word] {
			t.Errorf("%s: the map in doc.go has no place for it: add its first word there", file)
		}
	}
	for word := range known {
		if found, _ := filepath.Glob(word + "*.go"); len(found) == 0 {
			t.Errorf("doc.go names %q, and no file begins so", word)
		}
	}
}

// exported is how many methods each internal package may export: what one package offers to others grows on purpose.
// The public API is counted separately.
var exported = map[string]int{
	"internal/engine":       130, // eleven are for writers, twelve for purges; HasHad, Present, Filed, Folds: rare kinds
	"internal/commit":       48,  // PutDocument, DeleteDocument, ChangeDocuments, Places: kinds without rules; Restoration
	"internal/rebuild":      2,
	"internal/flush":        40, // also Lock and FlushFiles, for adoptions
	"internal/views":        13,
	"internal/adopt":        32, // also for trees: Ignores, Missing, LookBelow, LeftOut, LookNow
	"internal/embedding":    22,
	"internal/history":      7,
	"internal/undo":         7,
	"internal/search":       5,
	"internal/retention":    18,
	"internal/erase/purge":  8, // two are of an error; First is for the copy elsewhere
	"internal/view/counts":  19,
	"internal/view/vectors": 38,
	"internal/scopes":       24, // DropBare is for a purge; Now is the clock of what expires
}

// TestExportedMethods verifies these numbers.
func TestExportedMethods(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for dir, most := range exported {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatal(dir, err)
		}
		n := 0
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.IsExported() {
					n++
				}
			}
		}
		if n > most {
			t.Errorf("%s exports %d methods, more than %d: let it offer less, or say here that it offers more", dir, n, most)
		}
	}
}

// TestFileLogIsSmall verifies that the log has only methods that each of its users needs. Methods that one collaborator
// needs belong to a type that the log returns: Archive, Purges, Processes …
func TestFileLogIsSmall(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	const most = 45
	names, err := filepath.Glob("wal/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var methods []string
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !f.Name.IsExported() {
				continue
			}
			if !strings.HasPrefix(f.Doc.Text(), f.Name.Name+" ") && !strings.HasPrefix(f.Doc.Text(), f.Name.Name+",") {
				switch f.Name.Name {
				case "Error", "Unwrap", "String": // methods of errors and causes
				default:
					t.Errorf("%s: the comment of %s does not begin with its name", name, f.Name.Name)
				}
			}
			if star, ok := f.Recv.List[0].Type.(*ast.StarExpr); ok && star.X.(*ast.Ident).Name == "FileLog" {
				methods = append(methods, f.Name.Name)
			}
		}
	}
	if len(methods) > most {
		t.Errorf("FileLog has %d exported methods, at most %d: make the new one a method of Archive, Purges, Processes, "+
			"Folder, Pace, Clock or Notes (wal/parts.go): %v", len(methods), most, methods)
	}
}

// TestStoreIsSmall verifies that Store has only what a program needs to keep memories. Everything else has an accessor
// (Admin, Vectors …).
func TestStoreIsSmall(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	const most = 32
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var methods []string
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !f.Name.IsExported() {
				continue
			}
			if p, ok := f.Recv.List[0].Type.(*ast.StarExpr); ok && p.X.(*ast.Ident).Name == "Store" {
				methods = append(methods, f.Name.Name)
			}
		}
	}
	if len(methods) == 0 || len(methods) > most {
		t.Errorf("Store has %d exported methods, at most %d: make the new one a method of Admin, Vectors, Sessions or of an "+
			"accessor of its own: %q", len(methods), most, methods)
	}
}

// TestHelpersAreForTests verifies that only tests import the helpers of tests, which replace the machine.
func TestHelpersAreForTests(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for _, p := range list(t, "linux", "./...") {
		if slices.Contains(p.Imports, module+"/internal/storetest") && p.ImportPath != module+"/internal/fixture" {
			t.Errorf("%s imports internal/storetest, which only tests may", p.ImportPath)
		}
		if slices.Contains(p.Imports, module+"/internal/parts") {
			t.Errorf("%s imports internal/parts, which only tests may", p.ImportPath)
		}
	}
}

// TestViewsStandApart verifies that no view imports another, so that one can be added or removed.
func TestViewsStandApart(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	const views = module + "/internal/view/"
	for _, goos := range systems {
		for _, p := range list(t, goos, "./internal/view/...") {
			for _, imp := range p.Imports {
				if strings.HasPrefix(imp, views) {
					t.Errorf("%s: %s imports %s", goos, p.ImportPath, imp)
				}
			}
		}
	}
}

// list returns what go list reports of the packages as goos builds them, without tests. cgo is off, because the core
// uses none.
func list(t *testing.T, goos string, args ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-e",
		"-json=ImportPath,Dir,Standard,GoFiles,Imports,DepOnly,Module"}, args...)...)
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s: %v\n%s", goos, err, stderr.Bytes())
	}
	var all []listed
	for dec := json.NewDecoder(bufio.NewReader(bytes.NewReader(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(fmt.Errorf("go list for %s: %w", goos, err))
		}
		all = append(all, p)
	}
}

// longLines are the lines of more than 120 columns that cannot be broken, or would read worse: texts for an agent,
// expressions, formats. The numbers may only fall.
var longLines = map[string]int{
	"cmd/memctl/internal/workingcmd/working.go": 1,
	"internal/erase/trace/quarantine.go":        1,
	"mcpserver/instructions.go":                 6,
	"wal/leftover.go":                           1,
}

// longTestLines is how many lines of tests and of bench/ have more than 120 columns. The number may only fall.
const longTestLines = 1025

// TestLineLength verifies that a line has at most 120 columns.
func TestLineLength(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	tests, left := 0, maps.Clone(longLines)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" ||
				d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for i, line := range strings.Split(string(text), "\n") {
			if utf8.RuneCountInString(line) <= 120 {
				continue
			}
			name := filepath.ToSlash(path)
			if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(name, "bench/") {
				tests++
			} else if left[name]--; left[name] < 0 {
				t.Errorf("%s:%d has %d columns, at most 120", path, i+1, utf8.RuneCountInString(line))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range left {
		if n > 0 {
			t.Errorf("%s has %d long lines less than longLines has: lower the number", name, n)
		}
	}
	if tests != longTestLines {
		t.Errorf("%d lines of tests and of bench/ have more than 120 columns, longTestLines is %d: it may only fall", tests,
			longTestLines)
	}
}

// TestPartsAreBuilt verifies that each package whose New takes the engine has a test that builds it without Open,
// through internal/parts.
func TestPartsAreBuilt(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("internal/*/*.go")
	deeper, derr := filepath.Glob("internal/*/*/*.go")
	if err = errors.Join(err, derr); err != nil {
		t.Fatal(err)
	}
	with, built := map[string]bool{}, map[string]bool{}
	for _, name := range append(files, deeper...) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.ToSlash(filepath.Dir(name))
		with[dir] = with[dir] || strings.Contains(string(b), "\nfunc New(eng *engine.Engine")
		built[dir] = built[dir] || strings.HasSuffix(name, "_test.go") && strings.Contains(string(b), "parts.New(t")
	}
	for dir, is := range with {
		if is && !built[dir] {
			t.Errorf("%s has no test that builds its part by internal/parts", dir)
		}
	}
}
