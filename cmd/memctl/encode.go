package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/varve-db/varve"
)

// line is a memory's document on one line.
func line(m *varve.Memory) ([]byte, error) {
	doc, err := m.Encode(noLimits())
	if err != nil {
		return nil, err
	}
	return oneLine(doc)
}

// assemblyLine is an assembly's document on one line.
func assemblyLine(as *varve.Assembly) ([]byte, error) {
	doc, err := as.Encode(noAssemblyLimits())
	if err != nil {
		return nil, err
	}
	return oneLine(doc)
}

func oneLine(doc []byte) ([]byte, error) {
	var b bytes.Buffer
	err := json.Compact(&b, doc)
	return b.Bytes(), err
}

func wrap(what, id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, printableID(id), err)
}
