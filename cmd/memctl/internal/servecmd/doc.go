// Package servecmd has the command memctl serve: it serves a store over HTTP, with package server.
//
//	serve    which store is served, and where
//	token    the commands that add, list and remove tokens
//	listen   addresses and certificates
package servecmd
