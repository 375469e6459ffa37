package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

func main() {
	version := flag.String("version", "", "`version` of the program")
	seconds := flag.Int64("time", 0, "time of the commit, in Unix `seconds`")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom [-version VERSION] [-time SECONDS] PROGRAM DOCUMENT")
		os.Exit(2)
	}
	if err := write(flag.Arg(0), flag.Arg(1), *version, time.Unix(*seconds, 0)); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

type (
	document struct {
		Version       string         `json:"spdxVersion"`
		License       string         `json:"dataLicense"`
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Created       creation       `json:"creationInfo"`
		Packages      []pkg          `json:"packages"`
		Relationships []relationship `json:"relationships"`
	}
	creation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	pkg struct {
		Name      string     `json:"name"`
		ID        string     `json:"SPDXID"`
		Version   string     `json:"versionInfo,omitempty"`
		File      string     `json:"packageFileName,omitempty"`
		Download  string     `json:"downloadLocation"`
		Analyzed  bool       `json:"filesAnalyzed"`
		Concluded string     `json:"licenseConcluded"`
		Declared  string     `json:"licenseDeclared"`
		Copyright string     `json:"copyrightText"`
		Checksums []checksum `json:"checksums,omitempty"`
		Refs      []ref      `json:"externalRefs,omitempty"`
	}
	checksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	ref struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	relationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

const noAssertion = "NOASSERTION"

func write(program, path, version string, at time.Time) error {
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	sum := sha256.Sum256(text)
	d := describe(info, filepath.Base(program), hex.EncodeToString(sum[:]), version, at)
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return vfs.ReplaceGiven(path, 0o644, func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
}

// describe returns the SPDX document for a program, made from info, the build information in the program. name is the
// name of the program's file, sum its SHA-256, and at the time of the document. An empty version means the version in
// info.
func describe(info *debug.BuildInfo, name, sum, version string, at time.Time) *document {
	version = cmp.Or(version, info.Main.Version)
	d := &document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name + " " + version,
		Namespace: "https://" + info.Main.Path + "/spdx/" + sum,
		Created:   creation{at.UTC().Format(time.RFC3339), []string{"Tool: " + info.Main.Path + "/packaging/sbom"}},
	}
	main := moduleEntry(info.Main.Path, version, "")
	main.ID, main.File, main.Declared = "SPDXRef-main", name, "Apache-2.0"
	main.Checksums = []checksum{{"SHA256", sum}}
	d.add(main, relationship{d.ID, "DESCRIBES", main.ID})
	standard := moduleEntry("std", strings.TrimPrefix(info.GoVersion, "go"), "")
	standard.ID = "SPDXRef-std"
	standard.Refs[0].Locator = "pkg:golang/stdlib@" + strings.TrimPrefix(info.GoVersion, "go")
	d.add(standard, relationship{main.ID, "DEPENDS_ON", standard.ID})
	for i, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		p := moduleEntry(m.Path, m.Version, m.Sum)
		p.ID = fmt.Sprintf("SPDXRef-module-%d", i+1)
		d.add(p, relationship{main.ID, "DEPENDS_ON", p.ID})
	}
	return d
}

func (d *document) add(p pkg, r relationship) {
	d.Packages, d.Relationships = append(d.Packages, p), append(d.Relationships, r)
}

// moduleEntry returns the SPDX entry of a module. The hash of go.sum is a hash of the list of the module's files,
// not of an archive, so the entry has the hash as a reference and not as a checksum.
func moduleEntry(path, version, sum string) pkg {
	p := pkg{
		Name: path, Version: version, Download: noAssertion, Concluded: noAssertion, Declared: noAssertion,
		Copyright: noAssertion,
		Refs:      []ref{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
	}
	if hash, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); sum != "" && err == nil {
		p.Refs = append(p.Refs, ref{"OTHER", "go-sum-sha256", hex.EncodeToString(hash)})
	}
	return p
}
