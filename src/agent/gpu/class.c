/*
 * Class names: what users ask for and quotas count. Known models by a table, so that the same
 * hardware has the same name on every node and under every driver; others by their tidied own name.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "agent/gpu/gpu.h"

/* The first row whose text stands in the model's name as whole words. */
static const struct {
    enum gpu_vendor vendor;
    const char *text;
    const char *name;
    bool has_memory; /* sold with several sizes, so the size is part of the class */
} models[] = {
    /* clang-format off */
    { GPU_VENDOR_NVIDIA, "GB200",    "gb200",    true },
    { GPU_VENDOR_NVIDIA, "B200",     "b200",     true },
    { GPU_VENDOR_NVIDIA, "GH200",    "gh200",    true },
    { GPU_VENDOR_NVIDIA, "H200",     "h200",     true },
    { GPU_VENDOR_NVIDIA, "H100 NVL", "h100-nvl", true },
    { GPU_VENDOR_NVIDIA, "H100 PCIe", "h100-pcie", true },
    { GPU_VENDOR_NVIDIA, "H100",     "h100",     true },
    { GPU_VENDOR_NVIDIA, "A100-PCIE", "a100-pcie", true },
    { GPU_VENDOR_NVIDIA, "A100 80GB PCIe", "a100-pcie", true },
    { GPU_VENDOR_NVIDIA, "A100",     "a100",     true },
    { GPU_VENDOR_NVIDIA, "A10G",     "a10g",     false },
    { GPU_VENDOR_NVIDIA, "A10",      "a10",      false },
    { GPU_VENDOR_NVIDIA, "A30",      "a30",      false },
    { GPU_VENDOR_NVIDIA, "A40",      "a40",      false },
    { GPU_VENDOR_NVIDIA, "L40S",     "l40s",     false },
    { GPU_VENDOR_NVIDIA, "L40",      "l40",      false },
    { GPU_VENDOR_NVIDIA, "L4",       "l4",       false },
    { GPU_VENDOR_NVIDIA, "V100",     "v100",     true },
    { GPU_VENDOR_NVIDIA, "P100",     "p100",     true },
    { GPU_VENDOR_NVIDIA, "Tesla T4", "t4",       false },
    { GPU_VENDOR_AMD,    "MI355X",   "mi355x",   false },
    { GPU_VENDOR_AMD,    "MI350X",   "mi350x",   false },
    { GPU_VENDOR_AMD,    "MI325X",   "mi325x",   false },
    { GPU_VENDOR_AMD,    "MI300X",   "mi300x",   false },
    { GPU_VENDOR_AMD,    "MI300A",   "mi300a",   false },
    { GPU_VENDOR_AMD,    "MI250X",   "mi250x",   false },
    { GPU_VENDOR_AMD,    "MI250",    "mi250",    false },
    { GPU_VENDOR_AMD,    "MI210",    "mi210",    false },
    { GPU_VENDOR_AMD,    "MI100",    "mi100",    false },
    { GPU_VENDOR_INTEL,  "Max 1550", "max-1550", false },
    { GPU_VENDOR_INTEL,  "Max 1100", "max-1100", false },
    /* clang-format on */
};

/* What is on the box, in GB: what a driver reports is less, by ECC and firmware. */
static const int sold_sizes[] = { 4,  6,  8,  10, 11,  12,  16,  20,  24,  32,  40,  48,
                                  64, 80, 94, 96, 128, 141, 144, 180, 186, 192, 256, 288 };

/* Words that every model of a vendor carries. */
static const char *const noise[] = { "nvidia",   "amd",         "ati",        "intel",
                                     "instinct", "geforce",     "tesla",      "radeon",
                                     "graphics", "corporation", "(simulated)" };

static int sold_size(int64_t memory_mib)
{
    for (size_t i = 0; i < COUNT_OF(sold_sizes); i++) {
        if ((int64_t)sold_sizes[i] * 1024 + 64 >= memory_mib)
            return sold_sizes[i];
    }
    return (int)((memory_mib + 1023) / 1024);
}

static void add_size(char out[GPU_CLASS_MAX], int64_t memory_mib)
{
    size_t used = strlen(out);
    if (memory_mib > 0)
        (void)snprintf(out + used, GPU_CLASS_MAX - used, "-%dg", sold_size(memory_mib));
}

static bool is_noise(struct str word)
{
    for (size_t i = 0; i < COUNT_OF(noise); i++) {
        if (word.size == strlen(noise[i]) && strncasecmp(word.data, noise[i], word.size) == 0)
            return true;
    }
    return false;
}

enum { TIDY_MAX = 32 };

/* Letters, digits and dots in lower case; anything else is one dash.
 * NOLINTNEXTLINE(readability-function-size): isalnum and tolower are macros that nest */
static void add_word(char out[GPU_CLASS_MAX], size_t *used, struct str word)
{
    for (size_t i = 0; i < word.size && *used < TIDY_MAX; i++) {
        unsigned char c = (unsigned char)word.data[i];
        bool is_kept = isalnum(c) || c == '.';
        if (is_kept || (*used > 0 && out[*used - 1] != '-'))
            out[(*used)++] = (char)(is_kept ? tolower(c) : '-');
    }
}

/* "NVIDIA GeForce RTX 4090" -> "rtx-4090". */
static void tidy(const char *model, char out[GPU_CLASS_MAX])
{
    size_t used = 0;
    struct str rest = str_of(model);
    while (rest.size > 0) {
        struct str word = str_cut(&rest, ' ');
        if (word.size == 0 || is_noise(word))
            continue;
        add_word(out, &used, word);
        add_word(out, &used, STR(" "));
    }
    while (used > 0 && out[used - 1] == '-')
        used--;
    out[used] = '\0';
}

/* As a whole: A100 is not in A1000, nor A40 in A4000. */
static bool has_words(const char *model, const char *text)
{
    size_t size = strlen(text);
    for (const char *at = strstr(model, text); at != NULL; at = strstr(at + 1, text)) {
        bool is_start = at == model || !isalnum((unsigned char)at[-1]);
        if (is_start && !isalnum((unsigned char)at[size]))
            return true;
    }
    return false;
}

char *gpu_class_name(enum gpu_vendor vendor, const char *model, int64_t memory_mib,
                     char out[GPU_CLASS_MAX])
{
    const char *mig = strstr(model, " MIG ");
    if (mig != NULL) {
        (void)snprintf(out, GPU_CLASS_MAX, "mig-%s", mig + strlen(" MIG "));
        return out;
    }
    for (size_t i = 0; i < COUNT_OF(models); i++) {
        if (models[i].vendor != vendor || !has_words(model, models[i].text))
            continue;
        (void)snprintf(out, GPU_CLASS_MAX, "%s", models[i].name);
        if (models[i].has_memory)
            add_size(out, memory_mib);
        return out;
    }
    tidy(model, out);
    if (out[0] == '\0')
        (void)snprintf(out, GPU_CLASS_MAX, "gpu-%s", gpu_vendor_name(vendor));
    add_size(out, memory_mib);
    return out;
}
