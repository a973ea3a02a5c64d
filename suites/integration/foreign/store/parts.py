"""The articles of the catalogue, by their standards and data sheets; lengths in mm, masses in g, costs in cents."""

from math import pi, sqrt

STEEL = 0.00785  # g/mm3
SIZES = {"M2.5": 2.5, "M3": 3.0, "M4": 4.0, "M5": 5.0, "M6": 6.0, "M8": 8.0}
LENGTHS = (6, 8, 10, 12, 16, 20, 25, 30, 35, 40)
#: Standard → its name, and head diameter and socket by thread.
HEADS = {
    "ISO 4762": ("Socket head cap screw", {"M2.5": (4.5, 2), "M3": (5.5, 2.5), "M4": (7, 3), "M5": (8.5, 4), "M6": (10, 5), "M8": (13, 6)}),
    "ISO 7380": ("Button head screw", {"M3": (5.7, 2), "M4": (7.6, 2.5), "M5": (9.5, 3), "M6": (10.5, 4), "M8": (14, 5)}),
    "ISO 10642": ("Countersunk head screw", {"M3": (6.72, 2), "M4": (8.96, 2.5), "M5": (11.2, 3), "M6": (13.44, 4), "M8": (17.92, 5)}),
}
NUTS = {"M3": (5.5, 2.4), "M4": (7, 3.2), "M5": (8, 4.7), "M6": (10, 5.2), "M8": (13, 6.8)}
WASHERS = {"M3": (3.2, 7, 0.5), "M4": (4.3, 9, 0.8), "M5": (5.3, 10, 1), "M6": (6.4, 12, 1.6), "M8": (8.4, 16, 1.6)}
#: Name → bore, outer diameter, width, mass, cost.
BEARINGS = {
    "623": (3, 10, 4, 1.5, 110), "624": (4, 13, 5, 3.1, 115), "625": (5, 16, 5, 4.8, 120), "626": (6, 19, 6, 8.0, 130),
    "688": (8, 16, 5, 3.9, 140), "608": (8, 22, 7, 12.0, 95), "6000": (10, 26, 8, 19.0, 180), "6001": (12, 28, 8, 21.0, 190),
    "6200": (10, 30, 9, 32.0, 210), "6201": (12, 32, 10, 37.0, 220),
}
#: Maker, model → torque N·m, speed rpm, mass, cost.
SERVOS = {
    ("TowerPro", "SG90"): (0.176, 100, 9.0, 320), ("TowerPro", "MG90S"): (0.216, 125, 13.4, 580),
    ("TowerPro", "MG996R"): (1.08, 70, 55.0, 890), ("Futaba", "S3003"): (0.4, 52, 37.0, 1290),
    ("Hitec", "HS-422"): (0.4, 62, 45.5, 1450),
}
MOTORS = {
    ("StepperOnline", "17HS4401"): (0.4, 280.0, 990), ("StepperOnline", "17HS19-2004S1"): (0.59, 390.0, 1390),
    ("StepperOnline", "23HS22-2804S"): (1.26, 700.0, 2290),
}


def articles():
    """Every article: id, category, maker, name, specs, cost of one in cents, mass in mg, source."""
    for standard, (kind, heads) in HEADS.items():
        number = standard.removeprefix("ISO ")
        for thread, (head, socket) in heads.items():
            for length in LENGTHS:
                d = SIZES[thread]
                mass = (pi / 4 * d * d * length * 0.86 + pi / 4 * head * head * d * 0.55) * STEEL
                specs = {"standard": standard, "thread": thread, "length_mm": length, "head_diameter_mm": head,
                         "socket_mm": socket, "drive": "hex socket", "strength_class": "8.8"}
                yield article(f"iso{number}-{thread}-{length}".lower(), "screw", "generic",
                              f"{kind} {standard} {thread}x{length}", specs, round(2 + d / 2 + length / 10), mass, standard)
    for thread, (flats, height) in NUTS.items():
        d = SIZES[thread]
        mass = (sqrt(3) / 2 * flats * flats - pi / 4 * d * d) * height * STEEL
        specs = {"standard": "ISO 4032", "thread": thread, "across_flats_mm": flats, "height_mm": height}
        yield article(f"iso4032-{thread}".lower(), "nut", "generic", f"Hexagon nut ISO 4032 {thread}", specs, round(1 + d / 2), mass, "ISO 4032")
    for thread, (bore, outer, thick) in WASHERS.items():
        specs = {"standard": "ISO 7089", "thread": thread, "bore_mm": bore, "outer_diameter_mm": outer, "thickness_mm": thick}
        yield article(f"iso7089-{thread}".lower(), "washer", "generic", f"Plain washer ISO 7089 {thread}", specs,
                      round(1 + outer / 8), pi / 4 * (outer**2 - bore**2) * thick * STEEL, "ISO 7089")
    for name, (bore, outer, width, mass, cost) in BEARINGS.items():
        specs = {"bore_mm": bore, "outer_diameter_mm": outer, "width_mm": width}
        yield article(f"bearing-{name}", "bearing", "generic", f"Deep groove ball bearing {name}", specs, cost, mass, "ISO 15")
    for (maker, model), (torque, speed, mass, cost) in SERVOS.items():
        yield article(f"servo-{model}".lower(), "servo", maker, f"{maker} {model} servo",
                      {"torque_n_m": torque, "speed_rpm": speed}, cost, mass, f"data sheet of {model}")
    for (maker, model), (torque, mass, cost) in MOTORS.items():
        yield article(f"motor-{model}".lower(), "motor", maker, f"{maker} {model} stepper motor", {"torque_n_m": torque}, cost, mass, f"data sheet of {model}")


def article(part_id, category, manufacturer, name, specs, cents, grams, source):
    return {"part_id": part_id, "category": category, "manufacturer": manufacturer, "name": name, "specs": specs,
            "cents": cents, "milligrams": max(1, round(grams * 1000)), "source": source}
