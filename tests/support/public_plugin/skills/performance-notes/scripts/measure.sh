#!/bin/sh
time "$@"
