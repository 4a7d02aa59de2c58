#include <stdio.h>

#include "kit.h"

static int failed = 0;

static void same(const char *name, int got, int want) {
    if (got != want) {
        printf("FAIL %s: got %d, want %d\n", name, got, want);
        failed = 1;
    }
}

int main(void) {
    same("clamp", clamp(-5, 0, 10), 0);
    same("clamp", clamp(5, 0, 10), 5);
    same("clamp", clamp(15, 0, 10), 10);
    same("last_page", last_page(0, 10), 1);
    same("last_page", last_page(10, 10), 1);
    same("last_page", last_page(11, 10), 2);
    same("is_leap", is_leap(1900), 0);
    same("is_leap", is_leap(2000), 1);
    same("is_leap", is_leap(2023), 0);
    same("is_leap", is_leap(2024), 1);
    same("median3", median3(3, 1, 2), 2);
    same("median3", median3(1, 2, 3), 2);
    same("count_words", count_words("one two  three"), 3);
    same("digit_sum", digit_sum(905), 14);
    same("digit_sum", digit_sum(-12), 3);
    same("run_length", run_length(""), 0);
    same("run_length", run_length("abbbc"), 3);
    same("overlap", overlap(0, 5, 3, 9), 2);
    same("overlap", overlap(0, 1, 3, 9), 0);
    return failed;
}
