! SPDX-License-Identifier: MIT
! A water molecule in a periodic box with the embedded model: energy, forces and stress, then 200 steps of dynamics (velocity Verlet).
program water
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t
    use mlff
    implicit none

    integer(c_int32_t), parameter :: numbers(3) = [8, 1, 1]
    real(c_double), parameter :: masses(3) = [15.999d0, 1.008d0, 1.008d0]                                     ! u
    real(c_double), parameter :: cell(3, 3) = reshape([9d0, 0d0, 0d0, 1d0, 9d0, 0d0, 0d0, 0.5d0, 9d0], [3, 3]) ! one vector per column
    real(c_double), parameter :: acceleration = 9.648533212d-3, step = 0.25d0 ! eV/(angstrom u) in angstrom/fs^2; fs
    real(c_double) :: positions(3, 3), velocities(3, 3), forces(3, 3), stress(6), potential, total, first_total
    type(mlff_model) :: model
    type(mlff_session) :: session
    character(len=:), allocatable :: error
    character(len=1000) :: name
    integer :: k, atom

    name = 'builtin'
    if (command_argument_count() > 0) call get_command_argument(1, name)
    call model%load(name, error)
    if (allocated(error)) then
        print '(a)', error
        stop 1
    end if
    call session%create(model, device='cpu', precision=mlff_fp64)

    positions = reshape([0d0, 0d0, 0d0, 0.96d0, 0d0, 0d0, -0.24d0, 0.93d0, 0d0], [3, 3])
    velocities = 0
    call session%evaluate(numbers, positions, potential, forces, cell=cell, stress=stress)
    print '("energy", f18.8)', potential
    print '("force ", 3f18.8)', forces
    print '("stress", 6f14.8)', stress

    first_total = potential
    do k = 1, 200
        call kick()
        positions = positions + step * velocities
        call session%evaluate(numbers, positions, potential, forces, cell=cell)
        call kick()
    end do
    total = potential
    do atom = 1, 3
        total = total + 0.5d0 * masses(atom) * sum(velocities(:, atom)**2) / acceleration
    end do
    print '("drift ", es12.3, " eV in 50 fs")', total - first_total

contains

    subroutine kick()
        do atom = 1, 3
            velocities(:, atom) = velocities(:, atom) + 0.5d0 * step * acceleration / masses(atom) * forces(:, atom)
        end do
    end subroutine
end program
