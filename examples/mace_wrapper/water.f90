! SPDX-License-Identifier: MIT
! Energies and forces of a water molecule, isolated and in a periodic box, with the functions of mace_wrapper.h.
!
!     gfortran mace_wrapper.f90 water.f90 -o water $(pkg-config --libs mace_wrapper)
!     ./water                  with the model inside mlff
!     ./water X.model          or: ./water small, a model from the model cache
program water
    use mace_wrapper
    implicit none

    real(c_double), parameter :: positions(3, 3) = reshape([0d0, 0d0, 0d0, 0.96d0, 0d0, 0d0, -0.24d0, 0.93d0, 0d0], [3, 3])
    real(c_double), parameter :: cell(3, 3) = reshape([9d0, 0d0, 0d0, 0d0, 9d0, 0d0, 0d0, 0d0, 9d0], [3, 3])
    integer(c_int), parameter :: numbers(3) = [8, 1, 1], pbc(3) = [1, 1, 1]
    character(len=4096) :: argument
    character(len=:, kind=c_char), allocatable, target :: model, device
    type(c_ptr) :: mace
    type(mace_result), target :: res

    argument = 'builtin'
    if (command_argument_count() > 0) call get_command_argument(1, argument)
    model = trim(argument) // c_null_char
    argument = 'cpu'
    if (command_argument_count() > 1) call get_command_argument(2, argument)
    device = trim(argument) // c_null_char

    ! model_path takes files and the model inside mlff, model_type the names of the model cache.
    if (scan(model, '/.') > 0 .or. model == 'builtin' // c_null_char) then
        mace = mace_init(c_loc(model), c_null_ptr, c_loc(device), 0_c_int)
    else
        mace = mace_init(c_null_ptr, c_loc(model), c_loc(device), 0_c_int)
    end if
    if (.not. c_associated(mace)) call stop_with(text_at(mace_get_error(c_null_ptr)))

    call mace_calculate(mace, positions, numbers, 3_c_int, res)
    call print_result('molecule')
    call mace_calculate_periodic(mace, positions, numbers, 3_c_int, cell, pbc, res)
    call print_result('periodic')
    call mace_destroy(mace)

contains

    subroutine print_result(what)
        character(len=*), intent(in) :: what
        real(c_double), pointer :: forces(:, :)
        if (res%success /= 1) call stop_with(what // ': ' // text_at(c_loc(res%error_msg)))
        call c_f_pointer(res%forces, forces, [3, int(res%num_atoms)])
        print '(a, ": ", f0.8, " eV")', what, res%energy
        print '(f16.8, " ", f16.8, " ", f16.8)', forces
        call mace_free_result(res)
    end subroutine

    subroutine stop_with(message)
        use, intrinsic :: iso_fortran_env, only: error_unit
        character(len=*), intent(in) :: message
        write (error_unit, '(a)') message
        stop 1
    end subroutine
end program
