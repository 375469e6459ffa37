package main

import "github.com/rogpeppe/go-internal/testscript"

func hold(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("hold: for Unix only") }
